"""Executors are replaced one at a time, each when it is free, and its heir is ready before it goes."""

import asyncio
import datetime
import os
import signal
from pathlib import Path

import msgspec
import pytest

from runwick.config.options import ExecutorOptions
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.outcomes import OutcomeKind
from runwick_supervisor import executor, seats
from runwick_supervisor.events import EventKind
from runwick_supervisor.zygote_handle import Zygote
from tests.supervisor.applications import trials
from tests.supervisor.applications.deeds import Echo, Endure, Facts, Hold, Nothing
from tests.supervisor.crew import DEADLINE_S, DEEDS, LEASE_S, ROOT, Crew, crew, is_gone, open_descriptors, until

TRIALS = "tests.supervisor.applications.trials"


def ready(its: Crew) -> int:
    return sum(one.is_ready for one in its.executors)


def test_an_executor_is_replaced_after_so_many_attempts_and_no_run_is_lost() -> None:
    async def scene() -> None:
        async with crew(2, options=ExecutorOptions(recycle_attempts=5)) as its:
            before = open_descriptors()
            pids = set()
            for _ in range(40):
                first, second = await its.run(Facts(), Facts())
                assert first.kind is second.kind is OutcomeKind.SUCCEEDED
                assert ready(its) == 2
                pids |= {one.pid for one in its.executors}
            assert len(pids) >= 4
            recycled = its.heard(EventKind.EXECUTOR_RECYCLED)
            assert all(event.text.startswith("replaced since it ended ") for event in recycled)
            assert its.heard(EventKind.EXECUTOR_DIED) == []
            assert its.heard(EventKind.RESTART_DELAYED) == []
            assert its.given_back == []
            await until(lambda: all(is_gone(pid) for pid in pids - {e.pid for e in its.executors}), "the old ones' end")
            await until(lambda: len(open_descriptors()) <= len(before), "their descriptors to be closed")

    asyncio.run(scene())


def test_a_pool_of_one_is_never_without_one_that_is_ready() -> None:
    async def scene() -> None:
        async with crew(1, options=ExecutorOptions(recycle_attempts=1)) as its:
            fewest = 1

            async def watch() -> None:
                nonlocal fewest
                while True:
                    fewest = min(fewest, ready(its))
                    await asyncio.sleep(0)

            watching = asyncio.create_task(watch())
            for number in range(10):
                assert await its.result(Echo(str(number))) == str(number)
            watching.cancel()
            assert fewest == 1

    asyncio.run(scene())


def test_an_old_executor_is_replaced_though_it_does_nothing() -> None:
    async def scene() -> None:
        options = ExecutorOptions(recycle_age=datetime.timedelta(seconds=1))
        async with crew(1, options=options, fence_margin_s=0.2) as its:
            pid = its.executors[0].pid
            its.executors[0].born_s -= 1.0
            await until(lambda: its.heard(EventKind.EXECUTOR_RECYCLED), "another one in its place")
            assert its.executors[0].pid != pid
            (activity,) = its.backend.doing()
            assert activity.restarts >= 1
            assert activity.restarted_for == "it is 1 s old"

    asyncio.run(scene())


def test_one_that_runs_is_left_alone_until_it_is_free(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            pid = its.executors[0].pid
            its.hand_over(Hold(str(tmp_path / "started"), str(tmp_path / "gate")))
            await until((tmp_path / "started").exists, "the run")
            its.executors[0].retire("somebody wants it")
            its.backend._seats.relieve()
            assert its.backend._seats._handing_over is None
            assert its.executors[0].pid == pid
            (tmp_path / "gate").touch()
            await until(lambda: its.heard(EventKind.EXECUTOR_RECYCLED), "another one in its place")
            (outcome,) = its.outcomes.values()
            assert outcome[0].kind is OutcomeKind.SUCCEEDED
            assert await its.result(Echo("next")) == "next"

    asyncio.run(scene())


def test_with_no_heir_it_works_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats, "_HEIR_WITHIN_S", 0.1)

    async def scene() -> None:
        async with crew(1) as its:
            pid = its.executors[0].pid
            assert its.zygote._running is not None
            zygote = its.zygote._running.process.pid
            os.kill(zygote, signal.SIGSTOP)
            try:
                its.executors[0].retire("somebody wants it")
                its.backend._seats.relieve()
                assert its.backend.room().free == 0
                await until(lambda: its.backend.room().free, "it to give up")
                assert await its.result(Echo("as before")) == "as before"
                assert its.executors[0].pid == pid
            finally:
                os.kill(zygote, signal.SIGCONT)
            await until(lambda: its.backend._seats._handing_over is None, "the birth that nobody waits for")
            assert len(its.executors) == 1

    asyncio.run(scene())


def test_all_are_replaced_by_executors_of_another_zygote_while_they_work(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(3) as its:
            (long,) = its.hand_over(Hold(str(tmp_path / "started"), str(tmp_path / "gate")))
            await until((tmp_path / "started").exists, "a long run")
            holder = int((tmp_path / "started").read_text())
            pids = {one.pid for one in its.executors}
            former = its.zygote
            its.zygote = Zygote(its.events.append, former.family)
            await its.zygote.boot(DEEDS, ROOT)
            its.backend.renew(its.zygote, 3)
            former.step_down()
            renewing = asyncio.create_task(former.outlive_children())
            await until(lambda: len(pids & {one.pid for one in its.executors}) == 1, "two of three")
            for number in range(10):
                assert await its.result(Echo(str(number))) == str(number)
            assert holder in {one.pid for one in its.executors}
            assert len(its.executors) == 3
            assert not renewing.done()
            (old,) = (one for one in its.executors if one.pid == holder)
            fenced_s = old.fenced_s
            its.backend.extend({old.held[0].attempt.attempt_id: fenced_s + LEASE_S})
            assert old.fenced_s > fenced_s, "its lease is renewed as before"
            (tmp_path / "gate").touch()
            await renewing
            assert its.outcomes[long][0].kind is OutcomeKind.SUCCEEDED
            assert pids & {one.pid for one in its.executors} == set()
            await former.stop()
            os.kill(its.executors[0].pid, signal.SIGKILL)
            await until(lambda: its.heard(EventKind.EXECUTOR_REPLACED), "a replacement by the second zygote")
            await its.run(Nothing(), Nothing())

    asyncio.run(scene())


def test_nothing_runs_in_executors_that_were_interrupted_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(3) as its:
            files = [tmp_path / f"started{number}" for number in range(3)]
            attempts = [its.attempt(Endure("python", str(file), f"{file}.seen")) for file in files]
            its.give(*attempts)
            await until(lambda: all(file.exists() for file in files), "three runs")
            interrupted = {one.pid for one in its.executors}
            waiting = its.hand_over(*[Facts() for _ in range(6)])
            its.backend.ask(attempts, CancellationCause.USER_REQUESTED, 10.0)
            await until(lambda: len(its.heard(EventKind.EXECUTOR_RECYCLED)) == 3, "their successors")
            assert interrupted.isdisjoint({one.pid for one in its.executors})
            await until(lambda: all(job in its.outcomes or job in its.given_back for job in waiting), "the others")
            outcomes = [outcome for job in waiting for outcome in its.outcomes.get(job, [])]
            for outcome in [*outcomes, *await its.run(Facts())]:
                assert outcome.result is not None
                assert msgspec.json.decode(outcome.result)["pid"] not in interrupted

    asyncio.run(scene())


def test_one_that_never_ends_is_killed_when_its_successor_has_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats, "STOP_WITHIN_S", 0.1)

    async def scene() -> None:
        options = ExecutorOptions(recycle_attempts=1)
        async with crew(1, TRIALS, application=trials.rw, options=options) as its:
            pid = await its.result(trials.Borrow())
            assert isinstance(pid, int)
            await until(lambda: is_gone(pid), "its death")
            await until(lambda: its.heard(EventKind.EXECUTOR_STOPPED), "the news")
            (told,) = its.heard(EventKind.EXECUTOR_STOPPED)
            assert told.text == "was killed: it did not end when it was told to"

    asyncio.run(scene())


def test_a_stop_by_force_does_not_wait_for_those_that_were_told_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats, "STOP_WITHIN_S", 600.0)

    async def hurry(its: Crew) -> None:
        await until(lambda: its.executors and all(one.told_to_end for one in its.executors), "the word")
        its.backend.ask(None, CancellationCause.SHUTDOWN, 0.0)

    async def scene() -> None:
        async with asyncio.timeout(DEADLINE_S), crew(2, TRIALS, application=trials.rw) as its:
            await its.run(trials.Borrow(), trials.Borrow())
            hurrying = asyncio.create_task(hurry(its))
        await hurrying
        its.backend.ask(None, CancellationCause.SHUTDOWN, 0.0)  # as when another pool ends later

    asyncio.run(scene())


def test_one_that_leaves_its_work_lying_is_replaced_and_the_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "TAKEN_WITHIN_S", 0.1)

    async def scene() -> None:
        async with crew(1, fence_margin_s=0.2) as its:
            pid = its.executors[0].pid
            os.kill(pid, signal.SIGSTOP)
            (job,) = its.hand_over(Facts())
            await until(lambda: is_gone(pid), "its death")
            await until(lambda: job in its.outcomes or job in its.given_back, "what becomes of the work")
            assert all(outcome.kind is OutcomeKind.SUCCEEDED for outcome in its.outcomes.get(job, []))
            (told,) = its.heard(EventKind.EXECUTOR_STOPPED)
            assert told.text == "was killed: it did not take what it was given"
            assert await its.result(Echo("next")) == "next"

    asyncio.run(scene())
