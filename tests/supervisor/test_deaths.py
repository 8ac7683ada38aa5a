"""What becomes of attempts and of everything else when executors die."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from runwick import Job
from runwick.contracts.outcomes import ErrorDetail, Outcome, OutcomeKind
from runwick_supervisor.child import FAULT_STATUS
from runwick_supervisor.events import EventKind
from tests.supervisor.applications.deeds import Beget, Close, Echo, End, Hold, Nothing, Scribble
from tests.supervisor.crew import Crew, crew, is_gone, open_descriptors, until


async def replaced(its: Crew, *pids: int) -> None:
    """Wait until every place is taken again, by somebody ready who is none of these."""
    places = len(its.backend._numbers)
    await until(
        lambda: (
            len(its.executors) == places
            and all(executor.pid not in pids and executor.is_ready for executor in its.executors)
        ),
        f"replacements for {pids}",
    )


def crashed(outcome: Outcome) -> ErrorDetail:
    """What it says of the executor's death."""
    assert outcome.kind is OutcomeKind.CRASHED
    assert outcome.code == "executor_crashed"
    assert outcome.error is not None
    return outcome.error


def test_the_death_of_an_idle_executor_costs_no_attempt() -> None:
    async def scene() -> None:
        async with crew(1) as its:
            await its.run(Nothing())
            pid = its.executors[0].pid
            os.kill(pid, signal.SIGKILL)
            await replaced(its, pid)
            assert await its.result(Echo("again")) == "again"
            (death,) = its.heard(EventKind.EXECUTOR_DIED)
            assert (death.executor, death.pid, death.attempt) == (1, pid, None)
            assert death.text == "died: killed by SIGKILL"
            (birth,) = its.heard(EventKind.EXECUTOR_REPLACED)
            assert birth.executor == 1
            assert birth.milliseconds is not None
            assert not any(outcome.kind is OutcomeKind.CRASHED for [outcome] in its.outcomes.values())

    asyncio.run(scene())


@pytest.mark.parametrize("reopens", ["nothing", "zeros", "a file"])
def test_a_handler_that_closes_the_hand_off_crashes_and_is_not_waited_for(reopens: str, tmp_path: Path) -> None:
    file = tmp_path / "its own"
    file.touch()

    async def scene() -> None:
        async with crew(1) as its:
            await its.run(Nothing())
            pid = its.executors[0].pid
            (outcome,) = await its.run(Close({"nothing": "", "zeros": "/dev/zero", "a file": str(file)}[reopens]))
            assert crashed(outcome).message == f"exited with status {FAULT_STATUS}"
            await replaced(its, pid)
            assert await its.result(Echo("again")) == "again"

    asyncio.run(scene())
    assert file.read_bytes() == b""


def test_a_running_attempt_crashes_and_what_was_queued_behind_it_runs_elsewhere(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            await its.make_known(Hold())
            pid = its.executors[0].pid
            numbers = its.hand_over(Hold(str(tmp_path / "started"), str(tmp_path / "never")), Hold(), Hold(), Hold())
            assert len(its.executors[0].held) == 4
            await until((tmp_path / "started").exists, "the run")
            os.kill(pid, signal.SIGKILL)
            await until(lambda: set(numbers) <= its.outcomes.keys(), "all four to end")
            (victim,) = its.outcomes[numbers[0]]
            assert crashed(victim) == ErrorDetail("signal", "killed by SIGKILL")
            assert victim.begun_at_ms is not None
            assert victim.usage is not None
            assert victim.usage.wall_us is not None
            assert victim.usage.cpu_user_us is None, "what nobody measured is not guessed"
            assert [its.outcomes[number][0].kind for number in numbers[1:]] == [OutcomeKind.SUCCEEDED] * 3
            assert its.given_back == []
            (death,) = its.heard(EventKind.EXECUTOR_DIED)
            assert death.attempt is not None
            assert death.attempt.job == numbers[0]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("end", "detail"),
    [
        (End(status=3), ErrorDetail("exit", "exited with status 3")),
        (End(status=0), ErrorDetail("exit", "exited with status 0")),
        (End(signal=signal.SIGSEGV), ErrorDetail("signal", "killed by SIGSEGV")),
        (End(signal=signal.SIGRTMIN + 1), ErrorDetail("signal", f"killed by signal {signal.SIGRTMIN + 1}")),
    ],
)
def test_the_outcome_says_how_the_executor_ended(end: Job, detail: ErrorDetail) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            assert crashed((await its.run(end))[0]) == detail
            await replaced(its)
            assert await its.result(Echo("again")) == "again"

    asyncio.run(scene())


def take_status(pid: int) -> None:
    """Wait for its death before the backend does."""
    os.waitpid(pid, 0)


def test_a_status_that_somebody_else_took_is_unknown(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            pid = its.executors[0].pid
            (number,) = its.hand_over(Hold(str(tmp_path / "started"), str(tmp_path / "never")))
            await until((tmp_path / "started").exists, "the run")
            os.kill(pid, signal.SIGKILL)
            take_status(pid)
            await until(lambda: number in its.outcomes, "the crash")
            assert crashed(its.outcomes[number][0]) == ErrorDetail("unknown", "ended in an unknown way")
            await replaced(its, pid)

    asyncio.run(scene())


def test_deaths_do_not_run_the_exit_handlers_of_the_zygote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEDS_EXIT_FILE", str(tmp_path / "exit"))

    async def scene() -> None:
        async with crew(1) as its:
            crashed((await its.run(End(status=1)))[0])
            await replaced(its)
            await its.run(Nothing())

    asyncio.run(scene())
    assert not (tmp_path / "exit").exists()


def test_thirty_deaths_are_replaced_and_leave_nothing() -> None:
    async def scene(its: Crew) -> None:
        before = open_descriptors()
        for _ in range(5):
            pids = [executor.pid for executor in its.executors]
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            await replaced(its, *pids)
            assert await asyncio.gather(*[its.result(Echo(f"{pid}")) for pid in pids]) == [f"{pid}" for pid in pids]
        assert len(its.heard(EventKind.EXECUTOR_DIED)) == len(its.heard(EventKind.EXECUTOR_REPLACED)) == 30
        assert its.heard(EventKind.RESTART_DELAYED) == []
        await until(lambda: len(open_descriptors()) == len(before), "the last pidfd to be closed")

    async def outer() -> None:
        async with crew(6) as its:
            await scene(its)

    asyncio.run(outer())


def test_the_sixth_death_in_a_short_time_makes_the_next_one_wait_but_come() -> None:
    async def scene() -> None:
        async with crew(1) as its:
            for _ in range(6):
                pid = its.executors[0].pid
                os.kill(pid, signal.SIGKILL)
                await replaced(its, pid)
            assert [event.milliseconds for event in its.heard(EventKind.RESTART_DELAYED)] == [50]
            assert await its.result(Echo("back")) == "back"

    asyncio.run(scene())


def test_whatever_a_dead_executor_started_is_killed_before_its_attempt_ends(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its:
            (number,) = its.hand_over(Beget(str(tmp_path / "started"), str(tmp_path / "never"), far=True))
            await until((tmp_path / "started").exists, "the children")
            executor, near, far = (int(pid) for pid in (tmp_path / "started").read_text().split())
            assert not is_gone(near)
            assert not is_gone(far)
            os.kill(executor, signal.SIGKILL)
            await until(lambda: number in its.outcomes, "the crash")
            assert is_gone(near)
            assert is_gone(far)
            assert await its.result(Echo("the other lives")) == "the other lives"

    asyncio.run(scene())


@pytest.mark.parametrize("what", ["counts", "records"])
def test_who_writes_into_the_hand_off_is_killed_and_nobody_else(what: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its:
            gate = tmp_path / "gate"
            numbers = its.hand_over(Hold(str(tmp_path / "started"), str(gate)))
            await until((tmp_path / "started").exists, "the other run")
            healthy = its.executors[0]
            numbers += its.hand_over(Scribble(what))
            await until(lambda: numbers[1] in its.outcomes, "the scribbler to end")
            assert crashed(its.outcomes[numbers[1]][0]).type == "signal"
            assert [event.executor for event in its.heard(EventKind.EXECUTOR_CONDEMNED)] == [2]
            gate.touch()
            await until(lambda: numbers[0] in its.outcomes, "the other to end")
            assert its.outcomes[numbers[0]][0].kind is OutcomeKind.SUCCEEDED
            assert its.executors[0] is healthy

    asyncio.run(scene())
