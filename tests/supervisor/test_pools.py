"""Two pools on one zygote: their executors are apart, the zygote is theirs together."""

import asyncio
import contextlib
import functools
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from runwick_supervisor.events import EventKind
from tests.supervisor.applications.deeds import Echo, Hold, Nothing
from tests.supervisor.crew import Crew, a_backend, crew, is_gone, until, working


@contextlib.asynccontextmanager
async def second_pool(first: Crew, executors: int = 1, attempts_max: int = 512) -> AsyncIterator[Crew]:
    """Another pool on the first one's zygote."""
    its = Crew(zygote=first.zygote)
    its.backend = a_backend(
        its, executors, "second", first_executor=len(first.executors) + 1, attempts_max=attempts_max
    )
    async with working(its):
        yield its


def test_each_runs_what_it_was_handed_on_executors_of_its_own(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2) as first, second_pool(first) as second:
            assert [executor.number for executor in (*first.executors, *second.executors)] == [1, 2, 3]
            gate = tmp_path / "gate"
            first.hand_over(*[Hold(str(tmp_path / name), str(gate)) for name in ("one", "two")])
            await until(lambda: (tmp_path / "one").exists() and (tmp_path / "two").exists(), "a full pool")
            assert (first.backend.room().free, second.backend.room().free) == (0, 1)
            assert await second.result(Echo("not held up")) == "not held up"
            gate.touch()
            await until(lambda: len(first.outcomes) == 2, "the first pool's runs")

    asyncio.run(scene())


def test_what_one_ends_with_is_none_of_the_others(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as first:
            async with second_pool(first) as second:
                (gone,) = [executor.pid for executor in second.executors]
                first.hand_over(Hold(str(tmp_path / "started"), str(tmp_path / "gate")))
                await until((tmp_path / "started").exists, "a run of the first pool")
                second.hand_over(Hold(str(tmp_path / "other"), str(tmp_path / "never")))
                await until((tmp_path / "other").exists, "a run of the second pool")
            assert is_gone(gone)
            assert first.outcomes == {}
            (tmp_path / "gate").touch()
            await until(lambda: first.outcomes, "the run to end")
            assert await first.result(Echo("still here")) == "still here"

    asyncio.run(scene())


def test_the_next_zygote_makes_executors_for_both() -> None:
    async def scene() -> None:
        async with crew(1) as first, second_pool(first) as second:
            assert first.zygote._running is not None
            os.kill(first.zygote._running.process.pid, signal.SIGKILL)
            await until(lambda: first.heard(EventKind.ZYGOTE_REPLACED), "the next zygote")
            for its in (first, second):
                os.kill(its.executors[0].pid, signal.SIGKILL)
            for its in (first, second):
                await until(functools.partial(its.heard, EventKind.EXECUTOR_REPLACED), "a replacement")
                assert await its.result(Echo("back")) == "back"

    asyncio.run(scene())


def test_a_pool_is_handed_no_more_ahead_than_its_share() -> None:
    async def scene() -> None:
        async with crew(1) as first, second_pool(first, attempts_max=10) as second:
            for its in (first, second):
                await its.make_known(Nothing())
            assert second.backend.room().ahead == 10
            assert first.backend.room().ahead > 100

    asyncio.run(scene())
