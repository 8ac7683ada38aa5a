"""Nobody waits behind a long run, and what is taken back has provably not begun."""

import asyncio
from pathlib import Path

import msgspec

from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.outcomes import OutcomeKind
from runwick_supervisor.events import EventKind
from tests.supervisor.applications.deeds import Echo, Hold, Note
from tests.supervisor.crew import Crew, crew, until


async def behind_a_long_run(its: Crew, folder: Path, short: int) -> list[int]:
    """Hand over a run that holds, and short ones of the same kind, some of which lie behind it; answers the numbers."""
    await its.make_known(Hold())
    numbers = its.hand_over(Hold(str(folder / "started"), str(folder / "gate")), *[Hold()] * short)
    assert len(its.executors[0].held) > 1
    await until((folder / "started").exists, "the long run")
    return numbers


def test_short_runs_behind_a_long_one_end_elsewhere_while_it_runs(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its:
            long, *short = await behind_a_long_run(its, tmp_path, 63)
            await until(lambda: set(short) <= its.outcomes.keys(), "the short runs to end")
            assert long not in its.outcomes
            assert its.given_back == []
            (tmp_path / "gate").touch()
            await until(lambda: long in its.outcomes, "the long run to end")
            assert its.outcomes[long][0].kind is OutcomeKind.SUCCEEDED

    asyncio.run(scene())


def test_with_nobody_free_they_are_given_back_and_the_executor_takes_work_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            long, *short = await behind_a_long_run(its, tmp_path, 63)
            await until(lambda: its.given_back, "the short runs to be given back")
            assert its.given_back == short
            assert its.backend.running() == 1
            (tmp_path / "gate").touch()
            await until(lambda: long in its.outcomes, "the long run to end")
            assert await its.result(Echo("next")) == "next"

    asyncio.run(scene())


def test_what_may_not_run_ahead_waits_for_a_free_executor_and_holds_the_others_back(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            await its.make_known(Hold())
            long = its.attempt(Hold(str(tmp_path / "started"), str(tmp_path / "gate")))
            lone = msgspec.structs.replace(its.attempt(Hold()), runs_ahead=False)
            other = its.attempt(Hold())
            its.give(long, lone, other)
            assert [held.attempt.job for held in its.executors[0].held] == [long.job]
            assert its.backend.room().ahead == 0
            (tmp_path / "gate").touch()
            await until(lambda: not its.backend.running(), "all to be dealt with")
            assert long.job in its.outcomes
            assert its.outcomes.keys() | set(its.given_back) >= {lone.job, other.job}

    asyncio.run(scene())


def test_a_drain_takes_back_all_that_has_not_begun(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            long, *short = await behind_a_long_run(its, tmp_path, 20)
            assert [attempt.job for attempt in its.backend.take_back()] == short
            assert its.backend.running() == 1
            assert list(its.backend.take_back()) == []
            (tmp_path / "gate").touch()
            await until(lambda: not its.backend.running(), "the long run to end")
            assert its.outcomes[long][0].kind is OutcomeKind.SUCCEEDED
            assert not its.outcomes.keys() & set(short)

    asyncio.run(scene())


def test_runs_whose_lease_is_lost_are_killed_and_others_go_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its:
            await its.make_known(Hold())
            gate = str(tmp_path / "gate")
            attempts = [its.attempt(Hold(str(tmp_path / name), gate)) for name in ("lost", "kept")]
            attempts += [its.attempt(Hold()) for _ in range(6)]
            its.give(*attempts)
            await until(lambda: (tmp_path / "lost").exists() and (tmp_path / "kept").exists(), "two runs")
            lost, kept, queued, *others = attempts
            its.backend.ask([lost, queued], CancellationCause.LEASE_LOST, 0)
            assert its.given_back == [queued.job]
            await until(lambda: lost.job in its.outcomes, "the end of the lost run")
            outcome = its.outcomes[lost.job][0]
            assert (outcome.kind, outcome.code) == (OutcomeKind.INTERRUPTED, "lease_lost")
            await until(lambda: {one.job for one in others} <= its.outcomes.keys(), "the others to end")
            assert kept.job not in its.outcomes
            assert its.heard(EventKind.EXECUTOR_DIED) == [], "it was killed on purpose"
            (tmp_path / "gate").touch()
            await until(lambda: kept.job in its.outcomes, "the kept run to end")

    asyncio.run(scene())


def test_the_end_of_the_worker_interrupts_what_runs_and_replaces_nobody(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            long, *short = await behind_a_long_run(its, tmp_path, 5)
            its.backend.ask(None, CancellationCause.SHUTDOWN, 0)
            assert its.given_back == short
            await until(lambda: not its.backend.running(), "the end of the run")
            outcome = its.outcomes[long][0]
            assert (outcome.kind, outcome.code) == (OutcomeKind.INTERRUPTED, "worker_stopping")
            assert outcome.begun_at_ms is not None
            assert its.heard(EventKind.EXECUTOR_REPLACED) == []

    asyncio.run(scene())


def test_an_executor_that_is_told_to_end_closes_what_has_process_scope(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            await its.run(Note(str(tmp_path / "diary")))

    asyncio.run(scene())
    assert (tmp_path / "diary").read_text() == "closed"
