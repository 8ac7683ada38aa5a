"""The fence: nothing of an executor outlives its moment, whatever the parent does and whatever its handler does."""

import asyncio
import mmap
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick import ExecutorOptions
from runwick.contracts.outcomes import OutcomeKind
from runwick_supervisor.fence import LEAD_NS, FenceMemory, FenceReader, now_ns
from runwick_supervisor.processes import descendants
from tests.supervisor.applications.deeds import Beget, Echo, Endure, ForkBeside, ForkInThreads, ForkWarily
from tests.supervisor.crew import DEADLINE_S, is_gone, until
from tests.supervisor.single import NUMBER, Single, single

MS = 1_000_000
FULL = ExecutorOptions()
WATCHED = ExecutorOptions(compiled_part=False)


@pytest.fixture
def fence() -> Iterator[FenceMemory]:
    made = FenceMemory.create()
    yield made
    made.close()


def test_nothing_is_fenced_until_it_is_said(fence: FenceMemory) -> None:
    reader = FenceReader(fence.descriptor)
    assert (fence.get(3), reader.due_ns(3), fence.has_fallen(3)) == (0, None, False)
    fence.set(3, now_ns() + 10_000 * MS)
    due_ns = reader.due_ns(3)
    assert due_ns is not None
    assert 0 < due_ns < 10_000 * MS
    assert reader.due_ns(4) is None
    fence.set(3, now_ns() + LEAD_NS // 2)
    due_ns = reader.due_ns(3)
    assert due_ns is not None
    assert due_ns <= 0, "who has to do something about it begins before"
    assert fence.has_fallen(3)


def test_whoever_is_given_the_fence_can_only_read_it(fence: FenceMemory) -> None:
    with pytest.raises(PermissionError):
        mmap.mmap(fence.descriptor, 4096)
    with pytest.raises(PermissionError):
        os.pwrite(fence.descriptor, b"x", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(fence.descriptor, 0)


def zygote_pid(its: Single) -> int:
    assert its.zygote._running is not None
    return its.zygote._running.process.pid


def pids_in(file: Path) -> list[int]:
    return [int(pid) for pid in file.read_text().split()]


@pytest.mark.parametrize("options", [FULL, WATCHED], ids=["full", "watched"])
@pytest.mark.parametrize("how", ["python", "in C"])
def test_an_executor_is_killed_when_its_moment_has_come(tmp_path: Path, options: ExecutorOptions, how: str) -> None:
    async def scene() -> None:
        async with single(options) as its:
            its.put(Endure(how, str(tmp_path / "started"), str(tmp_path / "seen")))
            await until((tmp_path / "started").exists, "the run")
            its.zygote.fence.set(NUMBER, now_ns() + 150 * MS)
            assert await its.death() == signal.SIGKILL
            assert its.zygote.fence.has_fallen(NUMBER)
            assert not (tmp_path / "seen").exists()

    asyncio.run(scene())


def test_what_its_handler_started_is_killed_with_it_even_what_left_its_session(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single(WATCHED) as its:
            its.put(Beget(str(tmp_path / "pids"), str(tmp_path / "never"), far=True))
            await until((tmp_path / "pids").exists, "the children")
            _, *begotten = pids_in(tmp_path / "pids")
            assert sorted(descendants(its.pid)) == sorted(begotten)
            its.zygote.fence.set(NUMBER, now_ns() + 100 * MS)
            assert await its.death() == signal.SIGKILL
            await until(lambda: all(map(is_gone, begotten)), f"{begotten} to be gone")

    asyncio.run(scene())


@pytest.mark.parametrize("options", [FULL, WATCHED], ids=["full", "watched"])
def test_a_moment_that_is_moved_on_or_taken_back_kills_nobody(tmp_path: Path, options: ExecutorOptions) -> None:
    async def scene() -> None:
        async with single(options) as its:
            first_ns = now_ns() + 800 * MS
            while now_ns() < first_ns + 100 * MS:
                its.zygote.fence.set(NUMBER, now_ns() + 800 * MS)
                assert await its.result(Echo("moved on")) == "moved on"
                await asyncio.sleep(0.01)
            last_ns = its.zygote.fence.get(NUMBER)
            its.zygote.fence.set(NUMBER, 0)
            await until(lambda: now_ns() > last_ns + 50 * MS, "the last moment to pass")
            assert await its.result(Echo("alive")) == "alive"

    asyncio.run(scene())


def test_the_kernel_keeps_the_moment_although_everybody_else_stands_still(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single(FULL) as its:
            its.put(Endure("in C", str(tmp_path / "started"), str(tmp_path / "seen")))
            await until((tmp_path / "started").exists, "the run")
            os.kill(zygote_pid(its), signal.SIGSTOP)
            its.zygote.fence.set(NUMBER, now_ns() + 300 * MS)
            assert await its.death() == signal.SIGKILL
            os.kill(zygote_pid(its), signal.SIGCONT)

    asyncio.run(scene())


def test_a_moment_said_before_a_run_holds_from_its_first_instruction_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single(FULL) as its:
            its.zygote.fence.set(NUMBER, now_ns() + 300 * MS)
            its.put(Endure("asleep", str(tmp_path / "started"), str(tmp_path / "seen")))
            await until((tmp_path / "started").exists, "the run")
            os.kill(its.pid, signal.SIGSTOP)
            os.kill(zygote_pid(its), signal.SIGSTOP)
            assert await its.death() == signal.SIGKILL
            os.kill(zygote_pid(its), signal.SIGCONT)

    asyncio.run(scene())


def test_a_later_zygote_watches_over_an_earlier_ones_executors(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single(WATCHED) as its:
            first = zygote_pid(its)
            os.kill(first, signal.SIGKILL)
            await until(lambda: its.zygote._running is not None and zygote_pid(its) != first, "the next zygote")
            its.zygote.fence.set(NUMBER, now_ns() + 100 * MS)
            assert await its.death() == signal.SIGKILL

    asyncio.run(scene())


@pytest.mark.parametrize("options", [FULL, WATCHED], ids=["full", "watched"])
def test_a_handler_forks_without_a_warning_that_there_are_threads(options: ExecutorOptions) -> None:
    async def scene() -> None:
        async with single(options) as its:
            assert await its.result(ForkWarily()) == []
            its.zygote.fence.set(NUMBER, now_ns() + 100 * MS)
            assert await its.death() == signal.SIGKILL, "it is kept after a fork as well"

    asyncio.run(scene())


def test_a_fork_in_a_thread_leaves_the_fence_although_the_main_thread_waits(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single(FULL) as its:
            its.put(ForkBeside(str(tmp_path / "started")))
            await until((tmp_path / "started").exists, "the fork")
            os.kill(zygote_pid(its), signal.SIGSTOP)
            its.zygote.fence.set(NUMBER, now_ns() + 300 * MS)
            try:
                assert await asyncio.wait_for(its.death(), DEADLINE_S) == signal.SIGKILL
            finally:
                os.kill(zygote_pid(its), signal.SIGCONT)

    asyncio.run(scene())


def test_threads_of_a_handler_may_fork_at_once() -> None:
    async def scene() -> None:
        async with single(FULL) as its:
            assert (await its.run(ForkInThreads(4, 25))).kind is OutcomeKind.SUCCEEDED
            its.zygote.fence.set(NUMBER, now_ns() + 100 * MS)
            assert await asyncio.wait_for(its.death(), DEADLINE_S) == signal.SIGKILL

    asyncio.run(scene())
