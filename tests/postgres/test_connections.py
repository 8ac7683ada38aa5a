"""Connections: how many there are, whom they serve, and that no loss of one is for good."""

import asyncio
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from runwick.contracts.errors import OutcomeUnknown, StoreUnavailable
from runwick.contracts.stores import Act
from runwick.runtime import crossings
from runwick.stores.postgres.driver import Driver
from runwick.stores.steps import Step
from scripts.servers.postgres import PostgresServer
from tests.postgres.asking import PATIENCE_S, eventually, execute
from tests.postgres.places import a_driver, a_store_on, add, doing, end_sessions, marked, names, sessions


@pytest.fixture
def url(database: str) -> str:
    return marked(database)


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
        self._remove = crossings.on("postgres.answered", self._stop)

    def _stop(self) -> None:
        self._inside.wait()
        self._go_on.wait()

    def wait(self) -> None:
        """Until all are inside; others pass from now on."""
        self._inside.wait()
        self._remove()

    def let_on(self) -> None:
        self._go_on.wait()


def read() -> Act[Any]:
    return doing(Step("names"), name="read", reads_only=True)


def test_one_caller_at_a_time_needs_one_connection_and_no_thread(driver: Driver, url: str) -> None:
    before = threading.enumerate()
    for number in range(5):
        driver.run(add(f"{number}"))
    assert len(sessions(url)) == 1
    assert threading.enumerate() == before


def test_callers_at_once_get_a_connection_each_up_to_the_limit(
    driver: Driver, url: str, crowd: ThreadPoolExecutor
) -> None:
    most = 4 + 2
    gathering = Gathering(most)
    calls = [crowd.submit(driver.run, read()) for _ in range(most)]
    gathering.wait()
    waiting = [crowd.submit(driver.run, read()) for _ in range(6)]
    assert len(sessions(url)) == most
    gathering.let_on()
    for call in calls + waiting:
        call.result(PATIENCE_S)
    assert len(sessions(url)) == most


def test_when_none_comes_free_in_time_it_is_unavailable(url: str, crowd: ThreadPoolExecutor) -> None:
    driver = a_driver(url, calls=0, limit_ms=300)
    gathering = Gathering(2)
    calls = [crowd.submit(driver.run, read()) for _ in range(2)]
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
    calls = [crowd.submit(driver.run, read()) for _ in range(2)]
    gathering.wait()
    waiting = [crowd.submit(driver.run, read()) for _ in range(3)]
    closing = crowd.submit(driver.close)
    gathering.let_on()
    for call in calls:
        call.result(PATIENCE_S)
    for call in waiting:
        error = call.exception(PATIENCE_S)
        assert error is None or "was closed by this process" in str(error)
    closing.result(PATIENCE_S)
    driver.close()
    eventually(lambda: not sessions(url), "its sessions end")


def test_f082_more_callers_than_connections_never_block_each_other_for_good(
    url: str, crowd: ThreadPoolExecutor
) -> None:
    driver = a_driver(url, calls=0)

    def dispatch_in_a_handler(number: int) -> None:
        driver.run(read())
        driver.run(add(f"{number}"))

    list(crowd.map(dispatch_in_a_handler, range(16)))
    assert len(driver.run(names())) == 16
    driver.close()


def test_claims_settlements_and_heartbeats_have_connections_of_their_own(driver: Driver, url: str) -> None:
    async def all_at_once() -> None:
        acts = ("claim", "settle", "begin", "release", "renew", "depart", "dispatch", "recover")
        await asyncio.gather(*(driver.run_async(add(act, act=act)) for act in acts))

    asyncio.run(all_at_once())
    assert len(sessions(url, "runwick claims")) == 1
    assert len(sessions(url, "runwick settlements")) == 1
    assert len(sessions(url, "runwick heartbeats")) == 1
    assert 1 <= len(sessions(url, "runwick")) <= 2


def test_a_burst_of_slow_calls_never_delays_a_renewal(driver: Driver, url: str) -> None:
    slow = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"

    async def renew_beside() -> None:
        sleeping = doing(Step("sleep", (PATIENCE_S,)), reads_only=True)
        burst = [asyncio.create_task(driver.run_async(sleeping)) for _ in range(12)]
        await asyncio.to_thread(eventually, lambda: len(execute(url, slow)) == 6, "every connection of the pool sleeps")
        for number in range(5):
            await driver.run_async(add(f"beat {number}", act="renew"))
        end_sessions(url, "runwick")
        while not all(task.done() for task in burst):
            await asyncio.to_thread(end_sessions, url, "runwick")
        await asyncio.gather(*burst, return_exceptions=True)

    asyncio.run(renew_beside())
    assert len(driver.run(names())) == 5


def test_all_connections_of_the_pool_die_and_nobody_notices(
    driver: Driver, url: str, crowd: ThreadPoolExecutor
) -> None:
    for _ in range(3):
        gathering = Gathering(6)
        calls = [crowd.submit(driver.run, read()) for _ in range(6)]
        gathering.wait()
        gathering.let_on()
        for call in calls:
            call.result(PATIENCE_S)
        assert end_sessions(url) >= 6


def test_a_server_that_gives_no_more_connections_is_unavailable_and_heals(
    postgres: PostgresServer, url: str, crowd: ThreadPoolExecutor
) -> None:
    name = url.rpartition("/")[2]
    postgres.execute("CREATE ROLE narrow LOGIN PASSWORD 'welcome' CONNECTION LIMIT 1")
    execute(url, "GRANT ALL ON SCHEMA runwick TO narrow; GRANT ALL ON ALL TABLES IN SCHEMA runwick TO narrow")
    driver = a_driver(postgres.url(name, "narrow", "welcome"))
    gathering = Gathering(1)
    first = crowd.submit(driver.run, read())
    gathering.wait()
    with pytest.raises(StoreUnavailable, match="too many connections for role"):
        driver.run(add("never"))
    gathering.let_on()
    first.result(PATIENCE_S)
    driver.run(add("now"))
    execute(url, "ALTER ROLE narrow CONNECTION LIMIT -1")
    gathering = Gathering(2)
    calls = [crowd.submit(driver.run, read()) for _ in range(2)]
    gathering.wait()
    gathering.let_on()
    for call in calls:
        call.result(PATIENCE_S)
    driver.close()
    eventually(lambda: not sessions(url), "its sessions end")
    execute(url, "DROP OWNED BY narrow")
    postgres.execute("DROP ROLE narrow")


def test_a_server_that_takes_connections_and_says_nothing_is_unavailable_in_time() -> None:
    with PostgresServer() as server:
        driver = a_driver(a_store_on(server), limit_ms=2_000)
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(StoreUnavailable, match=r"gives no connection \(connection timeout expired"):
                driver.run(add("never"))
        finally:
            os.kill(server.pid, signal.SIGCONT)
        driver.run(add("now"))
        driver.close()


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

    def check(self, found: set[str]) -> None:
        assert self.confirmed <= found
        assert not self.refused & found
        assert found <= self.confirmed | self.unknown


def keep_writing(driver: Driver, ledger: Ledger, writer: int, until: Callable[[], bool]) -> None:
    number = 0
    while not until():
        ledger.write(driver, f"{writer}.{number}")
        number += 1


def test_sessions_ended_at_random_lose_nothing_confirmed(driver: Driver, url: str, crowd: ThreadPoolExecutor) -> None:
    ledger, done = Ledger(), threading.Event()
    writers = [crowd.submit(keep_writing, driver, ledger, writer, done.is_set) for writer in range(4)]
    ended = 0
    chance = random.Random(11)
    while ended < 20:
        victims = sessions(url)
        if victims:
            ended += execute(url, f"SELECT pg_terminate_backend({chance.choice(victims)})")[0][0]
    done.set()
    for writer in writers:
        writer.result(PATIENCE_S)
    ledger.check(driver.run(names()))
    assert ledger.confirmed


def test_f065_a_server_that_is_cut_again_and_again_is_served_as_soon_as_it_is_back(crowd: ThreadPoolExecutor) -> None:
    """Every loop by itself: calls, claims and heartbeats all come back."""
    with PostgresServer() as server:
        driver = a_driver(a_store_on(server), limit_ms=2_000)
        ledger, done = Ledger(), threading.Event()
        driver.run(names())
        writers = [crowd.submit(keep_writing, driver, ledger, writer, done.is_set) for writer in range(4)]
        for mode in ("fast", "immediate", "kill", "immediate", "fast"):
            confirmed = len(ledger.confirmed)
            eventually(lambda least=confirmed: len(ledger.confirmed) > least, "writes go on")  # type: ignore[misc]
            server.kill() if mode == "kill" else server.stop(mode)  # type: ignore[arg-type]
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
        ledger.check(driver.run(names()) - {"claim", "renew", "dispatch"})
        driver.close()
