"""Another store, an empty one or an older one in the place of the known one: found at once, and broken for good."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runwick.contracts.errors import StoreHistoryBroken, StoreNotInstalled, StoreRevisionMismatch
from runwick.contracts.stores import Act
from runwick.stores.redis.driver import Driver
from tests.redis.asking import execute
from tests.redis.places import APPLICATION, a_driver, add, end_clients, names

META = f"rw:{{{APPLICATION}}}:meta"
ID = b"\x02\xfd" * 8


@pytest.fixture
def url(bare_redis: str) -> str:
    install(bare_redis)
    return bare_redis


def install(url: str, store_id: bytes = ID) -> None:
    execute(url, "HSET", "rw:store", "id", store_id, "revision", 1)


@pytest.fixture
def driver(url: str) -> Iterator[Driver]:
    driver = a_driver(url)
    driver.run(add("one"))
    driver.run(add("two"))
    yield driver
    driver.close()


def empty(url: str) -> None:
    execute(url, "FLUSHDB")


def install_anew(url: str) -> None:
    execute(url, "FLUSHDB")
    install(url, b"\x03\xfc" * 8)


def go_back(url: str) -> None:
    execute(url, "HSET", META, "writes", 1)


def forget(url: str) -> None:
    execute(url, "DEL", META)


BREAKS = [
    (empty, "store_history_broken", "the store is not there any more"),
    (install_anew, "store_identity_mismatch", "the store is 03fc"),
    (go_back, "store_history_broken", "stands at write 1, it stood at 2"),
    (forget, "store_history_broken", "stands at write 0, it stood at 2"),
]


@pytest.mark.parametrize(("happen", "code", "said"), BREAKS)
@pytest.mark.parametrize("reconnects", [False, True])
def test_a_break_is_found_and_holds_until_the_process_begins_anew(
    driver: Driver, url: str, happen: Callable[[str], None], code: str, said: str, reconnects: bool
) -> None:
    happen(url)
    if reconnects:
        end_clients(url)
    acts: list[Act[Any]] = [add("never"), names(), add("never", "settle")]
    for act in acts:
        with pytest.raises(StoreHistoryBroken, match=said) as broken:
            driver.run(act)
        assert broken.value.code == code
    with pytest.raises(StoreHistoryBroken):
        driver.check()
    driver.close()
    empty(url)
    install(url)
    execute(url, "HSET", META, "writes", 9)
    with pytest.raises(StoreHistoryBroken):
        driver.run(names())
    assert execute(url, "EXISTS", f"rw:{{{APPLICATION}}}:marks") == 0, "nothing was written"
    anew = a_driver(url)
    assert anew.run(add("in a new process")) == 1
    anew.close()


def test_an_idle_process_finds_out_when_it_checks(driver: Driver, url: str) -> None:
    empty(url)
    with pytest.raises(StoreHistoryBroken, match="not there any more"):
        driver.check()


def test_the_counter_is_one_for_each_application(url: str) -> None:
    driver = a_driver(url)
    driver.run(add("one"))
    execute(url, "HSET", "rw:{office}:meta", "writes", 0)
    assert driver._history.writes("office") == 0
    assert driver._history.writes(APPLICATION) == 1
    driver._history.learn(APPLICATION, 0)
    assert driver._history.writes(APPLICATION) == 1, "what came late changes nothing"
    driver.close()


def test_a_database_without_a_store_is_not_installed_and_can_be_later(bare_redis: str) -> None:
    driver = a_driver(bare_redis)
    for attempt in (driver.check, lambda: driver.run(add("never"))):
        with pytest.raises(StoreNotInstalled, match="runwick migrate"):
            attempt()
    install(bare_redis)
    assert driver.run(add("now")) == 1
    assert driver.store_id == ID
    driver.close()


@pytest.mark.parametrize(("revision", "age"), [(0, "older"), (2, "newer")])
def test_a_store_of_another_release_is_refused(bare_redis: str, revision: int, age: str) -> None:
    execute(bare_redis, "HSET", "rw:store", "id", ID, "revision", revision)
    driver = a_driver(bare_redis)
    with pytest.raises(StoreRevisionMismatch, match=f"the store is {age}"):
        driver.run(add("never"))
    driver.close()
