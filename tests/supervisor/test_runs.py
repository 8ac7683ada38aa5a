"""Runs on executors from hand-over to outcome."""

import asyncio
import os
import signal
from pathlib import Path

import psutil

from runwick.contracts.outcomes import OutcomeKind
from runwick.runtime import place
from tests.supervisor.applications.deeds import Echo, EchoAll, Facts, Fork, Hold, Nothing, Recurse, Refuse
from tests.supervisor.crew import Crew, crew, until


def test_a_run_comes_back_with_its_result_its_begin_and_its_cost() -> None:
    async def scene() -> None:
        async with crew() as its:
            (outcome,) = await its.run(Echo("hello"))
            assert outcome.kind is OutcomeKind.SUCCEEDED
            assert outcome.result == b'"hello"'
            assert outcome.begun_at_ms is not None
            assert outcome.usage is not None
            assert outcome.usage.wall_us is not None
            assert outcome.usage.rss_end_bytes is not None
            assert outcome.usage.rss_end_bytes > 1_000_000

    asyncio.run(scene())


def test_the_largest_payload_and_the_largest_result_cross_many_times() -> None:
    texts = ("a" * 262_100, "b" * 262_100, "c" * 262_100, "d" * 262_100)

    async def scene() -> None:
        async with crew() as its:
            for _ in range(12):
                results = await asyncio.gather(*[its.result(EchoAll(texts)) for _ in range(2)])
                assert results == [list(texts)] * 2

    asyncio.run(scene())


def test_a_handler_that_raises_is_a_failed_run_and_not_a_dead_executor() -> None:
    async def scene() -> None:
        async with crew(1) as its:
            executor = its.executors[0]
            (refused,) = await its.run(Refuse("not today"))
            assert refused.kind is OutcomeKind.FAILED
            assert refused.error is not None
            assert refused.error.message == "not today"
            (recursed,) = await its.run(Recurse())
            assert recursed.error is not None
            assert recursed.error.type == "RecursionError"
            assert its.executors == [executor]

    asyncio.run(scene())


def test_short_runs_flow_deep_and_in_order() -> None:
    async def scene(its: Crew) -> None:
        await its.make_known(Nothing())
        room = its.backend.room()
        assert room.free == 2
        assert room.worthwhile
        assert room.ahead > 100, "a run of some microseconds is handed far ahead"
        numbers: list[int] = []
        while len(numbers) < 5000:
            room = its.backend.room()
            numbers += its.hand_over(*[Nothing()] * min(room.free + room.ahead, 128))
            await asyncio.sleep(0)
        await until(lambda: not its.backend.running(), "all of them to end")
        assert set(numbers) <= set(its.outcomes)
        assert its.given_back == []

    async def outer() -> None:
        async with crew() as its:
            await scene(its)

    asyncio.run(outer())


def test_a_kind_that_was_never_seen_is_given_to_free_executors_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its:
            assert its.backend.room().ahead == 0
            gate = tmp_path / "gate"
            its.hand_over(*[Hold(str(tmp_path / name), str(gate)) for name in ("one", "two", "three")])
            await until(lambda: (tmp_path / "one").exists() and (tmp_path / "two").exists(), "two runs")
            assert [len(executor.held) for executor in its.executors] == [1, 1]
            await until(lambda: its.given_back, "the third to be given up")
            assert its.given_back == [3]
            gate.touch()
            await until(lambda: its.outcomes.keys() == {1, 2}, "the two to end")

    asyncio.run(scene())


def test_each_executor_is_a_child_of_the_supervisor_in_a_session_of_its_own() -> None:
    async def scene() -> None:
        async with crew(2) as its:
            outcomes = await asyncio.gather(its.result(Facts()), its.result(Facts()))
            pids = {executor.pid for executor in its.executors}
            assert {facts["pid"] for facts in outcomes} == pids  # type: ignore[index]
            for facts in outcomes:
                assert facts["parent"] == os.getpid()  # type: ignore[index]
                assert facts["session"] == facts["pid"]  # type: ignore[index]
                assert facts["in_executor"]  # type: ignore[index]
            assert not place.in_executor()
            assert len({facts["chance"] for facts in outcomes}) == 2  # type: ignore[index]

    asyncio.run(scene())


def born_since(strangers: set[int]) -> list[psutil.Process]:
    """The children of this process, but for those of other tests."""
    return [child for child in psutil.Process().children() if child.pid not in strangers]


def test_process_titles_say_what_each_process_does(tmp_path: Path) -> None:
    strangers = {child.pid for child in psutil.Process().children()}

    def title(pid: int) -> str:
        return " ".join(psutil.Process(pid).cmdline()).strip()

    async def scene() -> None:
        async with crew(1) as its:
            executor = its.executors[0]
            await until(lambda: title(executor.pid) == "runwick executor 1 deeds", "the idle title")
            its.hand_over(Hold(str(tmp_path / "started"), str(tmp_path / "gate")))
            await until((tmp_path / "started").exists, "the run")
            assert title(executor.pid) == "runwick executor 1 deeds: deeds.hold"
            zygotes = [child.pid for child in born_since(strangers) if child.pid != executor.pid]
            assert [title(pid) for pid in zygotes] == ["runwick zygote deeds"]
            (tmp_path / "gate").touch()
            await until(lambda: title(executor.pid) == "runwick executor 1 deeds", "the idle title again")

    asyncio.run(scene())


def test_a_handler_that_forks_answers_once() -> None:
    async def scene() -> None:
        async with crew(1) as its:
            pid = its.executors[0].pid
            for _ in range(3):
                child = await its.result(Fork())
                assert isinstance(child, int)
                assert child > 0
            assert await its.result(Echo("one at a time")) == "one at a time"
            assert [executor.pid for executor in its.executors] == [pid]

    asyncio.run(scene())


def test_stop_signals_to_executors_and_zygote_stop_nothing() -> None:
    strangers = {child.pid for child in psutil.Process().children()}

    async def scene() -> None:
        async with crew(2) as its:
            before = [executor.pid for executor in its.executors]
            for child in born_since(strangers):
                for number in (signal.SIGTERM, signal.SIGINT):
                    os.killpg(child.pid, number)
            assert await its.result(Echo("still here")) == "still here"
            assert [executor.pid for executor in its.executors] == before
            os.kill(its.executors[0].pid, signal.SIGKILL)
            await until(lambda: len(its.executors) == 2 and its.executors[0].pid != before[0], "a replacement")

    asyncio.run(scene())
