"""The log stays short, whoever writes, and a checkpoint never costs anybody an answer."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runwick.stores.sqlite.checkpoint import PAGES_BETWEEN, PAGES_WHEN_CALM
from runwick.stores.sqlite.driver import Driver
from runwick.stores.sqlite.turnstile import turnstiles
from tests.sqlite.places import PAGE_BYTES, a_driver, add_pages, migrated, names
from tests.sqlite.processes import Child, Peer

PAGES_AT_ONCE = 100


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    driver = a_driver(migrated(tmp_path))
    yield driver
    driver.close()


def pages_in_log(path: Path) -> float:
    return Path(f"{path}-wal").stat().st_size / (PAGE_BYTES + 24)


def pages_in_database(path: Path) -> float:
    return path.stat().st_size / PAGE_BYTES


def test_the_log_stays_short_while_two_processes_write(driver: Driver) -> None:
    rounds = 30

    def write(peer: Peer) -> None:
        for number in range(rounds):
            driver.run(add_pages(f"child {number}", PAGES_AT_ONCE))

    with Child(write) as child:
        for number in range(rounds):
            driver.run(add_pages(f"parent {number}", PAGES_AT_ONCE))
        assert child.end() == 0
    assert len(driver.run(names())) == 2 * rounds
    assert pages_in_log(driver.path) < PAGES_BETWEEN + 5 * PAGES_AT_ONCE, f"{2 * rounds * PAGES_AT_ONCE} were written"


def test_a_reader_in_the_way_only_delays_it(driver: Driver) -> None:
    reader = sqlite3.connect(driver.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM runwick_application").fetchone()
    for number in range(25):
        driver.run(add_pages(f"behind the reader {number}", PAGES_AT_ONCE))
    assert pages_in_database(driver.path) < PAGES_AT_ONCE
    reader.close()
    for number in range(15):
        driver.run(add_pages(f"after it {number}", PAGES_AT_ONCE))
    assert pages_in_database(driver.path) > 25 * PAGES_AT_ONCE
    longest = pages_in_log(driver.path)
    for number in range(40):
        driver.run(add_pages(f"at last {number}", PAGES_AT_ONCE))
    assert pages_in_log(driver.path) == longest


def test_a_calm_moment_is_used_earlier(driver: Driver) -> None:
    driver.run(add_pages("some", PAGES_WHEN_CALM + 1))
    assert pages_in_database(driver.path) < PAGES_WHEN_CALM
    act = add_pages("few", 1)
    steps = act.steps

    def calmly() -> Any:
        driver.calm()
        return steps()

    act.steps = calmly
    driver.run(act)
    assert pages_in_database(driver.path) > PAGES_WHEN_CALM


def test_a_checkpoint_of_another_process_is_not_waited_for(driver: Driver) -> None:
    def be_the_one(peer: Peer) -> None:
        with turnstiles.take(driver.path).checkpoint() as mine:
            peer.say(mine)
            peer.hear()

    with Child(be_the_one) as child:
        assert child.hear()
        driver.run(add_pages("much", PAGES_BETWEEN + 1))
        assert pages_in_database(driver.path) < PAGES_BETWEEN
        child.say("done")
    driver.run(add_pages("little", 1))
    assert pages_in_database(driver.path) > PAGES_BETWEEN


def test_a_checkpoint_that_fails_costs_nobody_an_answer(driver: Driver) -> None:
    driver.run(add_pages("first", 1))
    works = driver._open()
    with works._checkpointing as connection:
        connection.close()  # whatever is executed on it fails from now on
    assert driver.run(add_pages("much", PAGES_BETWEEN + 1)) == 1
    assert driver.run(names()) == {"first", "much"}
