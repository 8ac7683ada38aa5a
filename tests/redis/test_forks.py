"""A fork, whatever the process was doing: parent and child both go on, each with connections of its own."""

import asyncio
import ctypes
import gc
import multiprocessing
import os
import queue
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from runwick.contracts.errors import OutcomeUnknown
from runwick.contracts.stores import Act
from runwick.runtime import crossings
from runwick.stores.redis.driver import Driver
from runwick.stores.redis.listening import WORK
from tests.postgres.asking import PATIENCE_S, eventually
from tests.redis.places import a_driver, add, clients, doing, end_clients, names
from tests.sqlite.processes import Child, Peer

SHOP = "shop"


def tell() -> Act[Any]:
    """What a function does when it has made work due."""
    return doing(("tell", (WORK, SHOP)))


def marks(driver: Driver) -> set[str]:
    """What was written."""
    found = driver.run(names())
    return set(found)


@pytest.fixture
def url(empty_redis: str) -> str:
    return empty_redis


@pytest.fixture
def driver(url: str) -> Iterator[Driver]:
    """One that has every connection and thread that there can be."""
    driver = a_driver(url)
    driver.run(add("before"))
    inside = threading.Barrier(2, timeout=PATIENCE_S)

    def meet() -> None:
        inside.wait()

    remove = crossings.on("redis.answered", meet)
    other = threading.Thread(target=driver.run, args=(names(),))
    other.start()
    driver.run(names())
    other.join()
    remove()

    async def open_all() -> None:
        for act in ("claim", "renew", "dispatch"):
            await driver.run_async(doing(("names", ()), name=act))

    asyncio.run(open_all())
    listening = threading.Event()
    driver.wake_on_work(listening.set)
    assert listening.wait(PATIENCE_S)
    eventually(lambda: not clients(url, "runwick-profile"), "what examined is closed")
    yield driver
    driver.close()


def test_parent_and_child_both_write_after_a_fork(driver: Driver, url: str) -> None:
    before = clients(url)

    def write(peer: Peer) -> None:
        for number in range(20):
            driver.run(add(f"child {number}"))
        asyncio.run(driver.run_async(add("child async", act="claim")))
        peer.say(len(driver.run(names())))
        driver.close()

    with Child(write) as child:
        for number in range(20):
            driver.run(add(f"parent {number}"))
        assert child.hear() >= 22
    assert len(driver.run(names())) == 42
    assert set(before) <= set(clients(url)), "no connection of the parent was touched"


def test_a_child_that_ends_in_order_says_no_good_bye_for_its_parent(driver: Driver, url: str) -> None:
    before = clients(url)

    def end(peer: Peer) -> None:
        driver.run(add("child"))
        driver.close()
        gc.collect()
        peer.say("ended")

    with Child(end) as child:
        child.hear()
    driver.run(add("parent"))
    assert set(before) <= set(clients(url))


def test_a_process_of_multiprocessing_works_and_ends_by_itself(driver: Driver, url: str) -> None:
    """It runs its exit handlers, unlike the children of the other tests."""
    before = clients(url)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads are what is tested
        process = multiprocessing.get_context("fork").Process(target=_add, args=(driver,))
        process.start()
    process.join(PATIENCE_S)
    assert process.exitcode == 0
    process.close()
    assert marks(driver) == {"before", "child"}
    assert set(before) <= set(clients(url))


def _add(driver: Driver) -> None:
    driver.run(add("child"))


def test_a_fork_while_another_thread_is_inside_a_call(driver: Driver) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        if threading.current_thread() is thread:
            inside.set()
            assert go_on.wait(PATIENCE_S)

    thread = threading.Thread(target=driver.run, args=(add("thread"),))
    remove = crossings.on("redis.answered", hold)
    thread.start()
    assert inside.wait(PATIENCE_S)
    with Child(lambda peer: peer.say(driver.run(add("child")) > 0)) as child:
        assert child.hear()
    go_on.set()
    thread.join(PATIENCE_S)
    remove()
    assert marks(driver) == {"before", "thread", "child"}


def test_a_fork_while_another_thread_opens_a_connection(driver: Driver, url: str) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        if threading.current_thread() is thread:
            inside.set()
            assert go_on.wait(PATIENCE_S)

    end_clients(url)
    thread = threading.Thread(target=driver.run, args=(add("thread"),))
    remove = crossings.on("redis.opened", hold)
    thread.start()
    assert inside.wait(PATIENCE_S)
    with Child(lambda peer: peer.say(driver.run(add("child")) > 0)) as child:
        assert child.hear()
    go_on.set()
    thread.join(PATIENCE_S)
    remove()
    assert marks(driver) == {"before", "thread", "child"}


def test_a_fork_inside_of_a_call_leaves_the_parents_connection_alone(driver: Driver, url: str) -> None:
    """The child comes back into the middle of the act: it must not go on there, and can begin anew."""
    before = clients(url)
    reading, writing = os.pipe()
    forked: list[int] = []

    def fork() -> None:
        if not forked:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                forked.append(os.fork())

    remove = crossings.on("redis.sending", fork)
    try:
        driver.run(add("parent"))
        error: Exception | None = None
    except Exception as raised:
        error = raised
    if forked == [0]:
        try:
            driver.run(add("child"))
            os.write(writing, type(error).__name__.encode())
        finally:
            os._exit(0)
    remove()
    os.close(writing)
    assert error is None
    with os.fdopen(reading) as answer:
        assert answer.read() == OutcomeUnknown.__name__
    os.waitpid(forked[0], 0)
    assert marks(driver) == {"before", "parent", "child"}
    assert set(before) <= set(clients(url))


def test_a_fork_by_foreign_code_is_noticed(driver: Driver, url: str) -> None:
    """C code that forks runs none of Python's hooks."""
    before = clients(url)
    reading, writing = os.pipe()
    if (pid := ctypes.PyDLL(None).fork()) == 0:
        try:
            driver.run(add("child"))
            os.write(writing, b"written")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        assert answer.read() == "written"
    os.waitpid(pid, 0)
    assert marks(driver) == {"before", "child"}
    assert set(before) <= set(clients(url))


def test_parent_and_child_are_both_woken_after_a_fork(driver: Driver, url: str) -> None:
    heard: queue.Queue[str] = queue.Queue()
    driver.wake_on_work(lambda: heard.put("parent"))

    def listen(peer: Peer) -> None:
        told: queue.Queue[str] = queue.Queue()
        driver.wake_on_work(lambda: told.put("child"))
        told.get(timeout=PATIENCE_S)
        peer.say("listening")
        peer.say(told.get(timeout=PATIENCE_S))
        peer.hear()
        driver.run(tell())
        driver.close()

    with Child(listen) as child:
        assert child.hear() == "listening"
        while not heard.empty():
            heard.get()
        driver.run(tell())
        assert child.hear() == "child"
        assert heard.get(timeout=PATIENCE_S) == "parent"
        child.say("tell")
    assert heard.get(timeout=PATIENCE_S) == "parent"


def test_a_child_knows_its_parents_store(driver: Driver, url: str) -> None:
    def compare(peer: Peer) -> None:
        peer.say(driver.store_id == known)

    known = driver.store_id
    with Child(compare) as child:
        assert child.hear()
    eventually(lambda: clients(url), "the parent is connected")
