"""The hint: what a function told, every process hears, whatever happens to a connection; and it is only ever a hint."""

import queue
import threading
from collections.abc import Iterator

import pytest

from runwick.stores.redis.driver import Driver
from runwick.stores.redis.listening import ASKED, PURPOSE, WORK, Listener, Told
from tests.postgres.asking import PATIENCE_S, eventually
from tests.redis.asking import execute
from tests.redis.places import a_driver, clients, doing, end_clients

SHOP, OFFICE = "shop", "office"
WORKER, OTHER_WORKER = b"\x00\xff" * 8, b"\x01" * 16


class Ear:
    """Hears wakes, one at a time."""

    def __init__(self, driver: Driver, *applications: str) -> None:
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
def url(empty_redis: str) -> str:
    return empty_redis


@pytest.fixture
def worker(url: str) -> Iterator[Driver]:
    """A process that listens."""
    driver = a_driver(url)
    yield driver
    driver.close()


def tell(url: str, application: str) -> None:
    """What a function does when it has made work due."""
    execute(url, "PUBLISH", WORK, application)


def test_another_process_is_woken_by_what_a_function_tells(worker: Driver, url: str) -> None:
    ear = Ear(worker, SHOP)
    assert ear.wakes(), "once when it begins to listen"
    other = a_driver(url)
    for _ in range(3):
        other.run(doing(("tell", (WORK, SHOP)), reads_only=False))
        assert ear.wakes()
    other.close()


def test_work_of_another_application_wakes_nobody(worker: Driver, url: str) -> None:
    ear, any_ear = Ear(worker, SHOP), Ear(worker)
    assert ear.wakes()
    assert any_ear.wakes()
    tell(url, OFFICE)
    assert any_ear.wakes()
    tell(url, SHOP)
    assert ear.wakes()
    assert ear.is_silent


def test_what_a_worker_is_asked_for_wakes_that_one(worker: Driver, url: str) -> None:
    heard: queue.Queue[str] = queue.Queue()
    ear = Ear(worker, SHOP)
    worker.wake_on_requests(WORKER, lambda: heard.put("mine"))
    stop = worker.wake_on_requests(OTHER_WORKER, lambda: heard.put("the other's"))
    assert ear.wakes()
    eventually(lambda: clients(url, PURPOSE), "it listens")
    execute(url, "PUBLISH", ASKED, SHOP.encode() + b"\0" + WORKER)
    while heard.get(timeout=PATIENCE_S) != "mine":
        pass
    stop()
    while not heard.empty():
        heard.get()
    execute(url, "PUBLISH", ASKED, SHOP.encode() + b"\0" + OTHER_WORKER)
    execute(url, "PUBLISH", ASKED, SHOP.encode() + b"\0" + WORKER)
    assert heard.get(timeout=PATIENCE_S) == "mine"
    assert ear.is_silent, "a request is no work"


def test_nobody_is_woken_after_stop(worker: Driver, url: str) -> None:
    stopped, ear = Ear(worker, SHOP), Ear(worker, SHOP)
    assert ear.wakes()
    stopped.stop()
    stopped.forget()
    ear.forget()
    tell(url, SHOP)
    assert ear.wakes()
    assert stopped.is_silent


def test_a_lost_connection_is_replaced_and_what_came_meanwhile_is_looked_for(worker: Driver, url: str) -> None:
    ear = Ear(worker, SHOP)
    for _ in range(5):
        assert ear.wakes()
        end_clients(url, PURPOSE)
    assert ear.wakes()
    tell(url, SHOP)
    assert ear.wakes()


def test_f070_it_listens_before_it_wakes_for_the_catch_up(worker: Driver, url: str) -> None:
    """What is told while somebody catches up is heard, for SUBSCRIBE came first."""
    woken, go_on = threading.Event(), threading.Event()
    heard: queue.Queue[bool] = queue.Queue()

    def wake() -> None:
        heard.put(True)
        woken.set()
        assert go_on.wait(PATIENCE_S)

    worker.wake_on_work(wake)
    assert woken.wait(PATIENCE_S)
    heard.get()
    tell(url, SHOP)
    go_on.set()
    assert heard.get(timeout=PATIENCE_S)


def test_a_silence_is_no_reason_to_connect_anew(url: str) -> None:
    driver = a_driver(url)
    heard: queue.Queue[Told] = queue.Queue()
    listener = Listener(driver._opening, heard.put, silence_s=0.02)
    assert heard.get(timeout=PATIENCE_S) == Told()
    (connected,) = clients(url, PURPOSE)
    assert heard.get(timeout=PATIENCE_S) == Told(), "it has asked whether the server is there"
    tell(url, SHOP)
    while (told := heard.get(timeout=PATIENCE_S)) == Told():
        pass
    assert told == Told(SHOP)
    assert clients(url, PURPOSE) == [connected]
    listener.close()
    driver.close()


def test_closing_ends_a_listener_in_the_middle_of_a_silence(worker: Driver, url: str) -> None:
    ear = Ear(worker)
    assert ear.wakes()
    before = {thread.name for thread in threading.enumerate()}
    assert "runwick-redis-listener" in before
    worker.close()
    assert "runwick-redis-listener" not in {thread.name for thread in threading.enumerate()}
    eventually(lambda: not clients(url), "its connection ends")


def test_closing_ends_a_listener_that_has_no_server() -> None:
    driver = a_driver("redis://127.0.0.1:1")
    before = threading.active_count()
    Ear(driver)
    assert threading.active_count() == before + 1
    driver.close()
    assert threading.active_count() == before
