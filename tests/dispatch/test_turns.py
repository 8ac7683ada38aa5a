"""The line of a process: who waits, who goes in, who is refused."""

import asyncio
import datetime
import gc
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from random import Random

import pytest

from runwick import LocalCapacityExceeded, ProducerOptions
from runwick.dispatch.turns import Turns
from tests.sqlite.processes import Child, Peer

DEADLINE_S = 20.0
NEVER = datetime.timedelta(seconds=60)
"""Longer than a test takes."""


def turns(inside: int = 1, waiting: int = 64, wait: datetime.timedelta = NEVER) -> Turns:
    return Turns(ProducerOptions(max_concurrent_calls=inside, max_waiting_operations=waiting, admission_wait=wait))


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


async def until_async(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


def waiting(line: Turns) -> int:
    return len(line._room._waiting)


def inside(line: Turns) -> int:
    return len(line._room._inside)


@contextmanager
def threads(number: int) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(number) as pool:
        yield pool


def test_a_free_turn_is_taken_and_given_back() -> None:
    line = turns(2)
    with line.turn(), line.turn():
        assert inside(line) == 2
    assert inside(line) == 0


def test_a_turn_is_given_back_by_a_block_that_raises() -> None:
    line = turns()
    with pytest.raises(ZeroDivisionError), line.turn():
        _ = 1 / 0
    assert inside(line) == 0


def test_no_more_are_inside_than_may_be_and_all_get_in() -> None:
    line, now, most = turns(3), [0], [0]
    counting = threading.Lock()

    def call() -> None:
        with line.turn():
            with counting:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.001)
            with counting:
                now[0] -= 1

    with threads(16) as pool:
        for done in [pool.submit(call) for _ in range(64)]:
            done.result(DEADLINE_S)
    assert most == [3]
    assert (inside(line), waiting(line)) == (0, 0)


def test_the_line_is_first_come_first_served_over_threads_and_event_loops() -> None:
    line, order = turns(), list[str]()

    def blocking(name: str) -> None:
        with line.turn():
            order.append(name)

    async def awaiting(name: str) -> None:
        async with line.turn_async():
            order.append(name)

    with threads(6) as pool, line.turn():
        ended = []
        for number in range(6):
            if number % 2:
                ended.append(pool.submit(blocking, f"thread {number}"))
            else:
                ended.append(pool.submit(asyncio.run, awaiting(f"loop {number}")))
            until(lambda expected=number + 1: waiting(line) == expected)  # type: ignore[misc]
        assert order == []
    for each in ended:
        each.result(DEADLINE_S)
    assert order == ["loop 0", "thread 1", "loop 2", "thread 3", "loop 4", "thread 5"]


def test_tasks_of_one_loop_and_a_thread_share_the_line() -> None:
    line, order = turns(), list[str]()

    async def awaiting(name: str) -> None:
        async with line.turn_async():
            order.append(name)
            await asyncio.sleep(0)

    def blocking() -> None:
        with line.turn():
            order.append("thread")

    async def all_at_once(pool: ThreadPoolExecutor) -> None:
        async with line.turn_async():
            tasks = [asyncio.create_task(awaiting("first"))]
            await until_async(lambda: waiting(line) == 1)
            blocked = pool.submit(blocking)
            await until_async(lambda: waiting(line) == 2)
            tasks.append(asyncio.create_task(awaiting("last")))
            await until_async(lambda: waiting(line) == 3)
        await asyncio.gather(*tasks, asyncio.wrap_future(blocked))

    with threads(1) as pool:
        asyncio.run(all_at_once(pool))
    assert order == ["first", "thread", "last"]


def test_one_more_than_may_wait_is_refused_at_once() -> None:
    line = turns(1, waiting=1)
    with threads(1) as pool:
        with line.turn():
            first = pool.submit(lambda: line.turn().__enter__())
            until(lambda: waiting(line) == 1)
            with pytest.raises(LocalCapacityExceeded, match="1 are under way and 1 wait for their turn") as refused:
                line.turn().__enter__()
            assert refused.value.code == "local_capacity_exceeded"
            assert refused.value.disposition == "known_not_applied"
        first.result(DEADLINE_S)


def test_nobody_waits_where_nobody_may() -> None:
    line = turns(1, waiting=0)
    with line.turn(), pytest.raises(LocalCapacityExceeded, match="0 wait"), line.turn():
        pass
    line = turns(1, wait=datetime.timedelta(0))
    with line.turn(), pytest.raises(LocalCapacityExceeded, match="stayed taken for 0 s"), line.turn():
        pass
    with line.turn():
        assert inside(line) == 1


def test_waiting_ends_after_the_admission_wait() -> None:
    line = turns(1, wait=datetime.timedelta(milliseconds=20))

    async def awaiting() -> None:
        async with line.turn_async():
            pass

    with line.turn():
        with pytest.raises(LocalCapacityExceeded, match="all 1 turns stayed taken for 20 ms"), line.turn():
            pass
        with pytest.raises(LocalCapacityExceeded, match="all 1 turns stayed taken for 20 ms"):
            asyncio.run(awaiting())
        assert waiting(line) == 0
    with line.turn():
        assert inside(line) == 1


def test_who_is_cancelled_leaves_the_line() -> None:
    line, order = turns(), list[str]()

    async def awaiting(name: str) -> None:
        async with line.turn_async():
            order.append(name)

    async def cancel_the_first_of_two() -> None:
        async with line.turn_async():
            first, second = asyncio.create_task(awaiting("first")), asyncio.create_task(awaiting("second"))
            await until_async(lambda: waiting(line) == 2)
            first.cancel()
            await until_async(lambda: waiting(line) == 1)
        await second
        assert first.cancelled()

    asyncio.run(cancel_the_first_of_two())
    assert order == ["second"]
    assert (inside(line), waiting(line)) == (0, 0)


def test_who_is_cancelled_when_called_passes_the_turn_on() -> None:
    line, order = turns(), list[str]()

    async def awaiting(name: str) -> None:
        async with line.turn_async():
            order.append(name)

    async def cancel_the_called_one() -> None:
        async with line.turn_async():
            first, second = asyncio.create_task(awaiting("first")), asyncio.create_task(awaiting("second"))
            await until_async(lambda: waiting(line) == 2)
        first.cancel()  # it has been called and has not run yet
        await second
        assert first.cancelled()

    asyncio.run(cancel_the_called_one())
    assert order == ["second"]
    assert (inside(line), waiting(line)) == (0, 0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_closed_loop_keeps_no_turn() -> None:
    line = turns()

    async def awaiting() -> None:
        async with line.turn_async():
            pass

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # it would tell of the task that never ended
    with line.turn():
        left = loop.create_task(awaiting())
        loop.run_until_complete(asyncio.sleep(0.01))
        assert waiting(line) == 1
        loop.close()
    with line.turn():
        assert inside(line) == 1
    del left
    gc.collect()
    assert (inside(line), waiting(line)) == (0, 0)


def test_a_child_begins_with_all_turns_free() -> None:
    line = turns(1, wait=datetime.timedelta(0))

    def work(peer: Peer) -> None:
        with line.turn():
            peer.say("in")
        with line.turn():
            peer.say("in again")

    with line.turn():
        with Child(work) as child:
            assert [child.hear(), child.hear()] == ["in", "in again"]
        assert inside(line) == 1  # the parent's is still its own


def test_a_child_inherits_no_lock_that_is_held() -> None:
    line = turns(1)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with line._room._guard:
            held.set()
            release.wait(DEADLINE_S)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(DEADLINE_S)

    def work(peer: Peer) -> None:
        with line.turn():
            peer.say("in")

    try:
        with Child(work) as child:
            assert child.hear() == "in"
    finally:
        release.set()
        holder.join()


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests' threads may still be there
        return os.fork()


def test_a_call_that_lives_through_a_fork_takes_nothing_of_the_childs() -> None:
    line = turns(1, wait=datetime.timedelta(0))
    with line.turn():
        pid = fork()
        if pid == 0:
            code = 1
            try:
                with line.turn():
                    code = 0 if inside(line) == 1 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert inside(line) == 1


def test_a_task_that_waits_through_a_fork_is_refused_in_the_child() -> None:
    line = turns(1, wait=datetime.timedelta(milliseconds=50))

    async def through_a_fork() -> int:
        async with line.turn_async():
            waits = asyncio.create_task(line.turn_async().__aenter__())
            await until_async(lambda: waiting(line) == 1)
            pid = fork()
            with pytest.raises(LocalCapacityExceeded):
                await waits
            if pid == 0:
                os._exit(7 if (inside(line), waiting(line)) == (0, 0) else 1)
            return pid

    child = asyncio.run(through_a_fork())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize("seed", range(3))
def test_whatever_callers_do_every_turn_comes_back(seed: int) -> None:
    line, inside_now, most = turns(2, waiting=6, wait=datetime.timedelta(milliseconds=5)), [0], [0]
    counting = threading.Lock()

    def count(step: int) -> None:
        with counting:
            inside_now[0] += step
            most[0] = max(most[0], inside_now[0])

    def blocking(random: Random) -> None:
        for _ in range(50):
            with suppress(LocalCapacityExceeded), line.turn():
                count(1)
                time.sleep(random.choice([0, 0.001, 0.004]))
                count(-1)

    async def awaiting(random: Random) -> None:
        with suppress(LocalCapacityExceeded):
            async with line.turn_async():
                count(1)
                try:
                    await asyncio.sleep(random.choice([0, 0.001, 0.004]))
                finally:
                    count(-1)

    async def loop(random: Random) -> None:
        for _ in range(20):
            tasks = [asyncio.create_task(awaiting(random)) for _ in range(4)]
            await asyncio.sleep(random.choice([0, 0.001]))
            random.choice(tasks).cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    with threads(6) as pool:
        ended = [pool.submit(blocking, Random(seed * 10 + each)) for each in range(3)]
        ended += [pool.submit(lambda each=each: asyncio.run(loop(Random(seed + each)))) for each in range(3)]  # type: ignore[misc]
        for each in ended:
            each.result(DEADLINE_S)
    assert most[0] <= 2
    assert (inside_now, inside(line), waiting(line)) == ([0], 0, 0)
