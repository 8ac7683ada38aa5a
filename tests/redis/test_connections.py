"""Connections: how many there are, whom they serve, that no loss of one is for good, and that nothing is sent twice."""

import asyncio
import contextlib
import os
import random
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from runwick.contracts.errors import OutcomeUnknown, StoreUnavailable
from runwick.runtime import crossings
from runwick.stores.redis.driver import Driver
from scripts.servers.redis import RedisServer
from tests.postgres.asking import PATIENCE_S, eventually
from tests.redis.asking import execute, writes_paused
from tests.redis.places import a_driver, add, clients, doing, end_clients, names, waiting


@pytest.fixture
def url(empty_redis: str) -> str:
    return empty_redis


@pytest.fixture
def driver(url: str) -> Iterator[Driver]:
    driver = a_driver(url, calls=4)
    yield driver
    driver.close()


@pytest.fixture
def crowd() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(20) as crowd:
        yield crowd


class Gathering:
    """So many threads that stand inside a call at the same time, until they are let on."""

    def __init__(self, many: int) -> None:
        self._inside = threading.Barrier(many + 1, timeout=PATIENCE_S)
        self._go_on = threading.Barrier(many + 1, timeout=PATIENCE_S)
        self._remove = crossings.on("redis.answered", self._stop)

    def _stop(self) -> None:
        self._inside.wait()
        self._go_on.wait()

    def wait(self) -> None:
        """Until all are inside; others pass from now on."""
        self._inside.wait()
        self._remove()

    def let_on(self) -> None:
        self._go_on.wait()


def test_one_caller_at_a_time_needs_one_connection(driver: Driver, url: str) -> None:
    for _ in range(5):
        driver.run(names())
    assert len(clients(url)) == 1


def test_callers_at_once_get_a_connection_each_up_to_the_limit(
    driver: Driver, url: str, crowd: ThreadPoolExecutor
) -> None:
    most = 4 + 2
    gathering = Gathering(most)
    calls = [crowd.submit(driver.run, names()) for _ in range(most)]
    gathering.wait()
    waiters = [crowd.submit(driver.run, names()) for _ in range(6)]
    eventually(lambda: len(clients(url)) == most, "what examined is closed")
    gathering.let_on()
    for call in calls + waiters:
        call.result(PATIENCE_S)
    assert len(clients(url)) == most


def test_when_none_comes_free_in_time_it_is_unavailable(url: str, crowd: ThreadPoolExecutor) -> None:
    driver = a_driver(url, calls=0, limit_ms=300)
    gathering = Gathering(2)
    calls = [crowd.submit(driver.run, names()) for _ in range(2)]
    gathering.wait()
    with pytest.raises(StoreUnavailable, match=r"no connection to .* came free in 300 ms; nothing was sent"):
        driver.run(add("never"))
    gathering.let_on()
    for call in calls:
        call.result(PATIENCE_S)
    driver.run(add("now"))
    driver.close()


def test_closing_beside_callers_leaves_nothing_open(url: str, crowd: ThreadPoolExecutor) -> None:
    driver = a_driver(url, calls=0)
    gathering = Gathering(2)
    calls = [crowd.submit(driver.run, names()) for _ in range(2)]
    gathering.wait()
    waiters = [crowd.submit(driver.run, names()) for _ in range(3)]
    closing = crowd.submit(driver.close)
    gathering.let_on()
    for call in calls:
        call.result(PATIENCE_S)
    for call in waiters:
        error = call.exception(PATIENCE_S)
        assert error is None or "was closed by this process" in str(error)
    closing.result(PATIENCE_S)
    driver.close()
    eventually(lambda: not clients(url), "its connections end")


def test_claims_settlements_and_heartbeats_have_connections_of_their_own(driver: Driver, url: str) -> None:
    async def all_at_once() -> None:
        acts = ("claim", "settle", "begin", "release", "renew", "depart", "dispatch", "recover")
        await asyncio.gather(*(driver.run_async(add(act, act=act)) for act in acts))

    asyncio.run(all_at_once())
    assert len(clients(url, "runwick-claims")) == 1
    assert len(clients(url, "runwick-settlements")) == 1
    assert len(clients(url, "runwick-heartbeats")) == 1


def test_a_burst_of_waiting_calls_never_delays_a_renewal(driver: Driver, url: str) -> None:
    async def renew_beside() -> None:
        gathering = Gathering(6)
        burst = [asyncio.create_task(driver.run_async(add(f"burst {number}"))) for number in range(12)]
        await asyncio.to_thread(gathering.wait)
        for number in range(5):
            await driver.run_async(add(f"beat {number}", act="renew"))
        await asyncio.to_thread(gathering.let_on)
        await asyncio.gather(*burst)

    asyncio.run(renew_beside())
    assert len(driver.run(names())) == 17


def test_all_connections_of_the_pool_die_and_nobody_notices(
    driver: Driver, url: str, crowd: ThreadPoolExecutor
) -> None:
    for _ in range(3):
        gathering = Gathering(6)
        calls = [crowd.submit(driver.run, names()) for _ in range(6)]
        gathering.wait()
        gathering.let_on()
        for call in calls:
            call.result(PATIENCE_S)
        assert end_clients(url) >= 6


def test_a_server_that_gives_no_more_connections_is_unavailable_and_heals() -> None:
    with RedisServer(settings={"maxclients": "3"}) as server:
        url = server.url(1)
        execute(url, "HSET", "rw:store", "id", b"\x01\xfe" * 8, "revision", 1)
        driver = a_driver(url)
        driver.run(names())
        holding = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        with pytest.raises(StoreUnavailable, match="gives no connection"):
            asyncio.run(driver.run_async(add("never", act="renew")))
        for each in holding:
            each.close()
        eventually(lambda: is_written(driver), "it heals")
        driver.close()


def is_written(driver: Driver) -> bool:
    try:
        asyncio.run(driver.run_async(add("now", act="renew")))
    except StoreUnavailable:
        return False
    return True


def test_a_server_that_takes_connections_and_says_nothing_is_unavailable_in_time() -> None:
    with RedisServer() as server:
        url = server.url(1)
        execute(url, "HSET", "rw:store", "id", b"\x01\xfe" * 8, "revision", 1)
        driver = a_driver(url, limit_ms=300)
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(StoreUnavailable, match="gives no connection"):
                driver.run(add("never"))
        finally:
            os.kill(server.pid, signal.SIGCONT)
        eventually(lambda: is_written(driver), "it goes on")
        driver.close()


class Deaf:
    """Stands between a driver and its server, and lets no answer through any more once it is told so."""

    def __init__(self, port: int) -> None:
        self.asked: list[bytes] = []
        """What was sent since."""
        self._loses = False
        self._upstream = port
        self._sockets = [socket.create_server(("127.0.0.1", 0))]
        self.port = self._sockets[0].getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def lose_answers(self) -> None:
        self._loses = True

    def let_through(self) -> None:
        self._loses = False

    def close(self) -> None:
        """End the threads first: a descriptor that is closed under one of them can be another socket's by then."""
        for each in self._sockets:
            end(each)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        for each in self._sockets:
            each.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._sockets[0].accept()
                server = socket.create_connection(("127.0.0.1", self._upstream))
                self._sockets += [client, server]
                self._start(self._pass, client, server, True)
                self._start(self._pass, server, client, False)

    def _pass(self, source: socket.socket, target: socket.socket, asks: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if asks and self._loses:
                    self.asked.append(data)
                if self._loses and not asks:
                    break  # the server has done it, and nobody hears
                target.sendall(data)
        end(source)
        end(target)


def end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("act", ["dispatch", "claim", "settle", "renew"])
def test_f060_a_lost_reply_is_unknown_and_the_client_never_repeats_the_command(url: str, act: str) -> None:
    direct = a_driver(url)
    port = int(url.rpartition("/")[0].rpartition(":")[2])
    deaf = Deaf(port)
    driver = a_driver(url.replace(f":{port}/", f":{deaf.port}/"))
    asyncio.run(driver.run_async(add("before", act)))
    deaf.lose_answers()
    with pytest.raises(OutcomeUnknown, match=f"the answer to {act} was lost"):
        asyncio.run(driver.run_async(add("once", act)))
    assert sum(data.count(b"FCALL") for data in deaf.asked) == 1
    deaf.let_through()
    assert direct.run(names()) == ["before", "once"], "it was applied, once"
    assert asyncio.run(driver.run_async(add("after", act))) == 3
    driver.close()
    deaf.close()
    direct.close()


class Ledger:
    """What became of writes, to be compared with what is there in the end."""

    def __init__(self) -> None:
        self.confirmed: set[str] = set()
        self.unknown: set[str] = set()
        self.refused: set[str] = set()

    def write(self, driver: Driver, name: str) -> None:
        try:
            driver.run(add(name))
        except StoreUnavailable:
            self.refused.add(name)
        except OutcomeUnknown:
            self.unknown.add(name)
        else:
            self.confirmed.add(name)

    def check(self, found: list[str]) -> None:
        assert len(found) == len(set(found)), "nothing is there twice"
        assert self.confirmed <= set(found)
        assert not self.refused & set(found)
        assert set(found) <= self.confirmed | self.unknown


def keep_writing(driver: Driver, ledger: Ledger, writer: int, until: Callable[[], bool]) -> None:
    number = 0
    while not until():
        ledger.write(driver, f"{writer}.{number}")
        number += 1


def test_connections_ended_at_random_lose_nothing_confirmed(
    driver: Driver, url: str, crowd: ThreadPoolExecutor
) -> None:
    ledger, done = Ledger(), threading.Event()
    writers = [crowd.submit(keep_writing, driver, ledger, writer, done.is_set) for writer in range(4)]
    ended = 0
    chance = random.Random(11)
    try:
        while ended < 20:
            if victims := clients(url):
                ended += execute(url, "CLIENT", "KILL", "ID", chance.choice(victims))
    finally:
        done.set()
    for writer in writers:
        writer.result(PATIENCE_S)
    ledger.check(driver.run(names()))
    assert ledger.confirmed


def test_f065_a_server_that_is_killed_again_and_again_is_served_as_soon_as_it_is_back(
    crowd: ThreadPoolExecutor,
) -> None:
    """Every loop by itself: calls, claims and heartbeats all come back."""
    with RedisServer() as server:
        url = server.url(1)
        execute(url, "HSET", "rw:store", "id", b"\x01\xfe" * 8, "revision", 1)
        driver = a_driver(url, limit_ms=5_000)
        ledger, done = Ledger(), threading.Event()
        driver.run(names())
        writers = [crowd.submit(keep_writing, driver, ledger, writer, done.is_set) for writer in range(4)]
        for mode in ("stop", "kill", "kill", "stop", "kill"):
            confirmed = len(ledger.confirmed)
            eventually(lambda least=confirmed: len(ledger.confirmed) > least, "writes go on")  # type: ignore[misc]
            server.kill() if mode == "kill" else server.stop()
            with pytest.raises(StoreUnavailable):
                driver.run(names())
            server.start()

        async def every_loop() -> None:
            async with asyncio.timeout(10):
                await asyncio.gather(*(driver.run_async(add(act, act=act)) for act in ("claim", "renew", "dispatch")))

        asyncio.run(every_loop())
        done.set()
        for writer in writers:
            writer.result(PATIENCE_S)
        ledger.check([name for name in driver.run(names()) if "." in name])
        driver.close()


def test_a_write_that_waits_costs_its_own_connection_alone(driver: Driver, url: str, crowd: ThreadPoolExecutor) -> None:
    driver.run(add("before"))
    with writes_paused(url):
        waiter = crowd.submit(driver.run, add("waits"))
        eventually(waiting(url), "it waits")
        assert driver.run(doing(("names", ()), reads_only=True)) == ["before"]
    assert waiter.result(PATIENCE_S) == 2
