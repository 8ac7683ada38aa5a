"""The hint: what one process told, the others hear, whatever happens to a connection; and it is only ever a hint."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from runwick.runtime import crossings
from runwick.stores.postgres.driver import Driver
from runwick.stores.postgres.listening import PURPOSE, Listener, Told
from tests.postgres.asking import PATIENCE_S, eventually, execute
from tests.postgres.places import a_driver, end_sessions, marked, sessions

SHOP, OFFICE = 7, 8


class Ear:
    """Hears wakes, one at a time."""

    def __init__(self, driver: Driver, *applications: int) -> None:
        self._heard: queue.Queue[str] = queue.Queue()
        concerned = set(applications)
        if concerned:
            self.stop = driver.wake_on_work(lambda: self._heard.put("wake"), concerned.__contains__)
        else:
            self.stop = driver.wake_on_work(lambda: self._heard.put("wake"))

    def wakes(self) -> bool:
        """Wait for a wake and take it."""
        return self._heard.get(timeout=PATIENCE_S) == "wake"

    def forget(self) -> None:
        while not self._heard.empty():
            self._heard.get()

    @property
    def is_silent(self) -> bool:
        return self._heard.empty()


@pytest.fixture
def url(database: str) -> str:
    return marked(database)


@pytest.fixture
def worker(url: str) -> Iterator[Driver]:
    """A process that listens…"""
    driver = a_driver(url)
    yield driver
    driver.close()


@pytest.fixture
def producer(url: str) -> Iterator[Driver]:
    """… and another one that tells; two drivers know nothing of each other."""
    driver = a_driver(url)
    yield driver
    driver.close()


@pytest.fixture
def told(url: str) -> Iterator["Spy"]:
    with Spy(url) as spy:
        yield spy


class Spy:
    """Everything that is sent through the server."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("LISTEN runwick")

    def __enter__(self) -> "Spy":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def next(self) -> str:
        for notification in self._connection.notifies(timeout=PATIENCE_S, stop_after=1):
            return f"{notification.channel} {notification.payload}"
        raise AssertionError("nothing was told")

    def so_far(self) -> list[str]:
        self._connection.execute("SELECT 1")
        return [notification.payload for notification in self._connection.notifies(timeout=0)]


def test_another_process_is_woken(worker: Driver, producer: Driver) -> None:
    ear = Ear(worker, SHOP)
    assert ear.wakes(), "once when it begins to listen"
    for _ in range(3):
        producer.notify(SHOP)
        assert ear.wakes()


def test_workers_of_the_same_process_are_woken_without_the_server(url: str) -> None:
    driver = a_driver("postgresql://nobody@127.0.0.1:1/nowhere")
    ear = Ear(driver, SHOP)
    driver.notify(SHOP)
    assert ear.wakes()
    driver.close()


def test_work_of_another_application_wakes_nobody(worker: Driver, producer: Driver) -> None:
    ear = Ear(worker, SHOP)
    assert ear.wakes()
    producer.notify(OFFICE)
    producer.notify(SHOP)
    assert ear.wakes()
    assert ear.is_silent


def test_nobody_is_woken_after_stop(worker: Driver, producer: Driver) -> None:
    stopped, ear = Ear(worker, SHOP), Ear(worker, SHOP)
    assert ear.wakes()
    stopped.stop()
    stopped.forget()
    ear.forget()
    producer.notify(SHOP)
    assert ear.wakes()
    assert stopped.is_silent


def test_f083_what_is_told_has_the_same_size_for_every_job(producer: Driver, told: Spy) -> None:
    producer.notify(SHOP)
    assert told.next() == f"runwick {SHOP}"


def test_a_busy_producer_tells_once_in_a_while_and_the_last_is_never_lost(producer: Driver, told: Spy) -> None:
    began_s = time.monotonic()
    for number in range(500):
        producer.notify(SHOP if number < 499 else OFFICE)
    producer.close()  # sends what is left
    took_s = time.monotonic() - began_s
    heard = told.so_far()
    assert str(OFFICE) in heard
    assert heard.count(str(SHOP)) <= took_s / 0.01 + 2


def test_an_interpreter_that_ends_sends_what_is_left(url: str, told: Spy) -> None:
    script = (
        "import sys\n"
        "from tests.postgres.places import a_driver\n"
        "driver = a_driver(sys.argv[1])\n"
        f"driver.notify({SHOP})\n"
        f"driver.notify({OFFICE})\n"
    )
    subprocess.run([sys.executable, "-c", script, url], check=True, timeout=PATIENCE_S, cwd=Path(__file__).parents[2])
    assert {str(SHOP), str(OFFICE)} == set(told.so_far())


def test_a_word_that_cannot_be_sent_is_left_to_polling(url: str, told: Spy) -> None:
    driver = a_driver(url)

    def refuse() -> None:
        raise RuntimeError("no connection")

    remove = crossings.on("postgres.opened", refuse)
    driver.notify(SHOP)
    driver.close()
    remove()
    assert told.so_far() == []
    driver.notify(SHOP)
    assert told.next() == f"runwick {SHOP}"
    driver.close()


def test_a_lost_connection_is_replaced_and_what_came_meanwhile_is_looked_for(
    worker: Driver, producer: Driver, url: str
) -> None:
    ear = Ear(worker, SHOP)
    for _ in range(5):
        assert ear.wakes()
        end_sessions(url, PURPOSE)
    assert ear.wakes()
    producer.notify(SHOP)
    assert ear.wakes()


def test_f070_it_listens_before_it_wakes_for_the_catch_up(
    worker: Driver, producer: Driver, told: Spy, url: str
) -> None:
    """What is told while somebody catches up is heard, for LISTEN came first."""
    woken, go_on = threading.Event(), threading.Event()
    heard: queue.Queue[bool] = queue.Queue()

    def wake() -> None:
        heard.put(True)
        woken.set()
        assert go_on.wait(PATIENCE_S)

    worker.wake_on_work(wake)
    assert woken.wait(PATIENCE_S)
    heard.get()
    producer.notify(SHOP)
    told.next()  # it was sent while the listener stood in its first wake
    go_on.set()
    assert heard.get(timeout=PATIENCE_S)


def test_a_connection_that_swallows_everything_is_noticed(url: str) -> None:
    """Its process on the server stands still, as a network would that lets nothing through."""
    driver = a_driver(url, limit_ms=200)
    heard: queue.Queue[Told] = queue.Queue()
    listener = Listener(driver._opening, heard.put, silence_s=0.05)
    assert heard.get(timeout=PATIENCE_S) == Told()
    (stopped,) = sessions(url, PURPOSE)
    os.kill(stopped, signal.SIGSTOP)
    try:
        assert heard.get(timeout=PATIENCE_S) == Told(), "it listens anew"
        driver.notify(SHOP)
        assert heard.get(timeout=PATIENCE_S) == Told(SHOP)
    finally:
        os.kill(stopped, signal.SIGCONT)
    listener.close()
    driver.close()


def test_a_silence_is_no_reason_to_connect_anew(url: str) -> None:
    driver = a_driver(url)
    heard: queue.Queue[Told] = queue.Queue()
    listener = Listener(driver._opening, heard.put, silence_s=0.01)
    assert heard.get(timeout=PATIENCE_S) == Told()
    asked = f"SELECT 1 FROM pg_stat_activity WHERE application_name = '{PURPOSE}' AND query LIKE '%SELECT 1;%'"
    eventually(lambda: execute(url, asked), "it asks whether the server is there")
    driver.notify(SHOP)
    assert heard.get(timeout=PATIENCE_S) == Told(SHOP)
    listener.close()
    driver.close()


def test_closing_ends_a_listener_that_has_no_server() -> None:
    driver = a_driver("postgresql://nobody@127.0.0.1:1/nowhere")
    before = threading.active_count()
    Ear(driver)
    assert threading.active_count() == before + 1
    driver.close()
    assert threading.active_count() == before
