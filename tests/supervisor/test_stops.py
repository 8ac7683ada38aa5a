"""Stopping is real: whatever a handler does, it ends within its time, and so does everything that it started."""

import asyncio
import re
import signal
from pathlib import Path

import msgspec
import pytest

from runwick import Job
from runwick.contracts.attempts import Attempt
from runwick.contracts.cancelling import CancellationCause as Cause
from runwick.contracts.outcomes import Death, Outcome, OutcomeKind
from runwick_supervisor.events import EventKind
from runwick_supervisor.signals import DUMP
from tests.supervisor.applications.trials import Disarm, Echo, Family, Linger, Persist, Split, Withstand, Yield, rw
from tests.supervisor.crew import GRACE_S, Crew, crew, is_gone, until

TRIALS = "tests.supervisor.applications.trials"
ENDINGS = {
    Cause.USER_REQUESTED: (OutcomeKind.CANCELLED, "cancel_requested"),
    Cause.TIMEOUT: (OutcomeKind.TIMED_OUT, "execution_timed_out"),
    Cause.SHUTDOWN: (OutcomeKind.INTERRUPTED, "worker_stopping"),
    Cause.LEASE_LOST: (OutcomeKind.INTERRUPTED, "lease_lost"),
}


async def begun(its: Crew, job: Job, file: Path, **policy: object) -> Attempt:
    """Hand the job over and wait until it runs."""
    attempt = its.attempt(job)
    attempt = msgspec.structs.replace(attempt, policy=msgspec.structs.replace(attempt.policy, **policy))
    its.give(attempt)
    await until(file.exists, "the run")
    return attempt


async def stopped(its: Crew, attempt: Attempt, cause: Cause, within_s: float = GRACE_S) -> Outcome:
    """Ask it to stop for this cause, a timeout excepted, and wait for its end."""
    if cause is not Cause.TIMEOUT:
        its.backend.ask([attempt], cause, within_s)
    await until(lambda: attempt.job in its.outcomes, "its end")
    return its.outcomes[attempt.job][0]


@pytest.mark.usefixtures("stack_is_waited_for")
@pytest.mark.parametrize("cause", ENDINGS, ids=lambda cause: cause.name)
@pytest.mark.parametrize("how", ["in C", "in a regular expression", "asleep"])
def test_what_never_looks_is_killed_and_its_stack_is_kept(how: str, cause: Cause, tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=rw) as its:
            started = tmp_path / "started"
            limit_ms = 100 if cause is Cause.TIMEOUT else None
            attempt = await begun(its, Persist(how, str(started)), started, execution_timeout_ms=limit_ms)
            outcome = await stopped(its, attempt, cause)
            assert (outcome.kind, outcome.code) == ENDINGS[cause]
            assert outcome.death == Death("signal", signal.SIGKILL, None, "handle")
            assert outcome.error is not None
            assert outcome.error.message == "its executor was stopped by force: killed by SIGKILL"
            (told,) = its.heard(EventKind.EXECUTOR_STOPPED)
            assert re.fullmatch(rf"was killed: its run had to stop \({outcome.code}\), peak \d+ MiB", told.text)
            assert outcome.black_box is not None
            assert "in persist" in outcome.black_box.stack
            assert outcome.usage is not None
            assert outcome.usage.rss_peak_bytes is not None
            assert is_gone(int(started.read_text()))
            assert await its.result(Echo("next")) == "next"
            assert its.heard(EventKind.EXECUTOR_DIED) == [], "it did not die by itself"
            (event,) = its.heard(EventKind.EXECUTOR_STOPPED)
            assert event.attempt == attempt
            assert its.heard(EventKind.RESTART_DELAYED) == []

    asyncio.run(scene())


@pytest.mark.parametrize("cause", [Cause.USER_REQUESTED, Cause.LEASE_LOST], ids=lambda cause: cause.name)
def test_everything_that_it_started_is_dead_before_its_end_is_told(cause: Cause, tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2, TRIALS, application=rw) as its:
            started = tmp_path / "started"
            attempt = await begun(its, Family(str(started)), started)
            pids = [int(pid) for pid in started.read_text().split()]
            assert len(pids) == 4
            assert not any(map(is_gone, pids))
            its.backend.ask([attempt], cause, 0)
            survivors: list[int] | None = None

            def told() -> bool:
                nonlocal survivors
                if attempt.job in its.outcomes and survivors is None:
                    survivors = [pid for pid in pids if not is_gone(pid)]
                return survivors is not None

            await until(told, "its end")
            assert survivors == []

    asyncio.run(scene())


def test_what_ends_in_time_ends_well_and_keeps_its_executor(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=rw) as its:
            pid = its.executors[0].pid
            started = tmp_path / "started"
            attempt = await begun(its, Yield(str(started)), started)
            outcome = await stopped(its, attempt, Cause.USER_REQUESTED, 60.0)
            assert outcome.kind is OutcomeKind.SUCCEEDED
            assert outcome.result == b'"USER_REQUESTED"'
            assert outcome.death is None
            assert await its.result(Echo("next")) == "next"
            assert its.executors[0].pid == pid

    asyncio.run(scene())


def test_a_handler_that_catches_its_interruption_is_killed_all_the_same(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=rw) as its:
            started = tmp_path / "started"
            attempt = await begun(its, Withstand(str(started)), started)
            outcome = await stopped(its, attempt, Cause.USER_REQUESTED)
            assert (outcome.kind, outcome.code) == ENDINGS[Cause.USER_REQUESTED]
            assert outcome.death is not None
            assert (tmp_path / "started.caught").read_text() == "0", "it was interrupted once"

    asyncio.run(scene())


def test_closing_goes_on_beyond_the_grace_within_its_budget(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=rw, cleanup_budget_s=60.0) as its:
            started = tmp_path / "started"
            job = Linger(2 * GRACE_S, str(tmp_path / "closing"), waits=True, started=str(started))
            attempt = await begun(its, job, started)
            outcome = await stopped(its, attempt, Cause.SHUTDOWN)
            assert outcome.death is None
            assert (tmp_path / "closing.closed").exists()

    asyncio.run(scene())


@pytest.mark.parametrize("cause", [Cause.USER_REQUESTED, Cause.LEASE_LOST], ids=lambda cause: cause.name)
def test_closing_without_end_is_killed(cause: Cause, tmp_path: Path) -> None:
    async def scene() -> None:
        budget_s = GRACE_S if cause is Cause.USER_REQUESTED else 60.0
        async with crew(1, TRIALS, application=rw, cleanup_budget_s=budget_s) as its:
            started = tmp_path / "started"
            job = Linger(60.0, str(tmp_path / "closing"), waits=True, started=str(started))
            attempt = await begun(its, job, started)
            outcome = await stopped(its, attempt, cause)
            assert (outcome.kind, outcome.code) == ENDINGS[cause]
            assert outcome.death == Death("signal", signal.SIGKILL, None, "close")

    asyncio.run(scene())


@pytest.mark.usefixtures("stack_is_waited_for")
def test_closing_without_end_is_a_failure_of_the_provider_when_nobody_asked(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=rw, fence_margin_s=0.2) as its:
            (outcome,) = await its.run(Linger(60.0, str(tmp_path / "closing")))
            assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "provider_failed")
            assert outcome.death == Death("signal", signal.SIGKILL, None, "close")
            assert outcome.black_box is not None
            assert "in slow" in outcome.black_box.stack

    asyncio.run(scene())


def test_all_are_asked_when_the_worker_stops_and_nobody_comes_after_them(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2, TRIALS, application=rw) as its:
            files = [tmp_path / "one", tmp_path / "two"]
            attempts = [await begun(its, Persist("asleep", str(file)), file) for file in files]
            waiting = its.attempt(Echo("never"))
            its.give(waiting)
            its.backend.ask(None, Cause.SHUTDOWN, GRACE_S)
            assert its.given_back == [waiting.job]
            await until(lambda: len(its.outcomes) == 2, "both to end")
            assert {its.outcomes[attempt.job][0].code for attempt in attempts} == {"worker_stopping"}
            await until(lambda: not its.executors, "their executors to be gone")
            assert its.heard(EventKind.EXECUTOR_REPLACED) == []

    asyncio.run(scene())


def test_with_two_causes_the_earlier_end_counts_and_a_timeout_says_how(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=rw) as its:
            started = tmp_path / "started"
            attempt = await begun(its, Persist("asleep", str(started)), started, execution_timeout_ms=50)
            its.backend.ask([attempt], Cause.USER_REQUESTED, 600.0)
            outcome = await stopped(its, attempt, Cause.TIMEOUT)
            assert (outcome.kind, outcome.code) == ENDINGS[Cause.TIMEOUT]

    asyncio.run(scene())


def test_a_job_that_keeps_only_messages_leaves_no_black_box(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=rw) as its:
            started = tmp_path / "started"
            attempt = await begun(its, Persist("asleep", str(started)), started, error_detail="message")
            outcome = await stopped(its, attempt, Cause.USER_REQUESTED)
            assert outcome.black_box is None
            assert outcome.death == Death("signal", signal.SIGKILL, None, "handle")

    asyncio.run(scene())


@pytest.mark.parametrize("executes", [False, True], ids=["default signals", "another program"])
def test_our_signals_kill_nobody_who_does_not_catch_them(executes: bool, tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=rw) as its:
            started = tmp_path / "started"
            attempt = await begun(its, Disarm(str(started), executes), started)
            (executor,) = its.executors
            await until(lambda: not executor.probe.catches(DUMP), "its signals to be its own")
            its.backend.look([attempt.attempt_id])
            assert not its.backend._overseer._looks, "nobody waits for what will not be written"
            assert attempt.job not in its.outcomes
            outcome = await stopped(its, attempt, Cause.USER_REQUESTED)
            assert (outcome.kind, outcome.code) == ENDINGS[Cause.USER_REQUESTED]
            assert outcome.death == Death("signal", signal.SIGKILL, None, "handle")

    asyncio.run(scene())


def test_a_fork_that_returns_does_not_say_where_the_run_is(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=rw) as its:
            attempt = await begun(its, Split(str(tmp_path / "left"), str(tmp_path / "until")), tmp_path / "left")
            assert its.executors[0].progress().phase == "handle"
            (tmp_path / "until").touch()
            await until(lambda: attempt.job in its.outcomes, "its end")
            assert its.outcomes[attempt.job][0].kind is OutcomeKind.SUCCEEDED

    asyncio.run(scene())
