import asyncio
import os
import threading
import time
from concurrent.futures import Future, wait

import pytest

from runwick.runtime.threads import LoopThread, Threads

DEADLINE_S = 10


def named(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def joined(name: str) -> None:
    for thread in named(name):
        thread.join(DEADLINE_S)
    assert named(name) == []


def test_threads_start_as_they_are_needed_and_never_more_than_that() -> None:
    threads = Threads("few", 2)
    assert named("few") == []
    assert [threads.call(lambda n=n: n).result(DEADLINE_S) for n in range(3)] == [0, 1, 2]  # type: ignore[misc]
    assert len(named("few")) == 1
    gate = threading.Event()
    held = [threads.call(lambda: gate.wait(DEADLINE_S)) for _ in range(4)]
    assert [thread.name for thread in named("few")] == ["few-1", "few-2"]
    assert all(thread.daemon for thread in named("few"))
    gate.set()
    assert [each.result(DEADLINE_S) for each in held] == [True] * 4
    threads.close()
    joined("few")


def test_one_thread_calls_in_the_order_of_asking_and_survives_errors() -> None:
    threads = Threads("one", 1)
    heard: list[int] = []

    def hear(number: int) -> None:
        heard.append(number)
        if number == 1:
            raise SystemExit("it wants to end the thread")

    asked: list[Future[None]] = [threads.call(lambda number=number: hear(number)) for number in range(3)]  # type: ignore[misc]
    wait(asked, DEADLINE_S)
    assert heard == [0, 1, 2]
    with pytest.raises(SystemExit, match="wants to end"):
        asked[1].result()
    threads.close()
    joined("one")


def test_what_is_cancelled_before_its_turn_is_never_called() -> None:
    threads = Threads("one", 1)
    gate, called = threading.Event(), threading.Event()
    first = threads.call(lambda: gate.wait(DEADLINE_S))
    second = threads.call(called.set)
    assert second.cancel()
    gate.set()
    assert first.result(DEADLINE_S)
    threads.close()
    joined("one")
    assert not called.is_set()


def test_closing_waits_for_nobody_and_a_later_call_starts_anew() -> None:
    threads = Threads("one", 1)
    gate = threading.Event()
    first = threads.call(lambda: gate.wait(DEADLINE_S))
    threads.close()
    assert not first.done()
    gate.set()
    assert first.result(DEADLINE_S)
    joined("one")
    assert threads.call(lambda: "anew").result(DEADLINE_S) == "anew"
    threads.close()
    joined("one")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_that_a_function_forked_ends_where_the_function_does() -> None:
    threads = Threads("one", 1)
    child = threads.call(os.fork).result(DEADLINE_S)
    until_s = time.monotonic() + DEADLINE_S
    while (found := os.waitpid(child, os.WNOHANG)) == (0, 0):
        assert time.monotonic() < until_s, "the child goes on"
        time.sleep(0.001)
    assert os.waitstatus_to_exitcode(found[1]) == 0
    threads.close()
    joined("one")


def test_a_loop_in_a_thread_of_its_own() -> None:
    over = asyncio.Event()

    async def life() -> str:
        await over.wait()
        return threading.current_thread().name

    thread = LoopThread("apart", life)
    thread.call_soon(over.set)  # not begun: nothing happens
    thread.start()
    assert not thread.ended.done()
    thread.call_soon(over.set)
    assert thread.ended.result(DEADLINE_S) == "apart"
    thread.call_soon(over.set)  # over: nothing happens
    joined("apart")


def test_what_ends_that_loop_is_told() -> None:
    async def life() -> None:
        raise SystemExit(3)

    thread = LoopThread("apart", life)
    thread.start()
    with pytest.raises(SystemExit):
        thread.ended.result(DEADLINE_S)
    joined("apart")
