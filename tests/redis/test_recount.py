"""What acts derive from jobs is as the jobs are, and a single entry that is wrong is found."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from runwick.contracts.attempts import Lane
from runwick.contracts.states import Priority
from scripts.servers.redis import RedisServer
from tests.conformance.redis_places import RedisDatabase
from tests.faults.stage import staged

P: Final = b"rw:{shop}:"
LANE: Final = Lane("proofs", Priority.LOW)
SETS: Final = ("w:*", "later:*", "b:*", "line:*", "expiry", "retrying", "leases", "cancels", "lined:limits", "scopes:*")
COUNTS: Final = ("leased", "n:*", "active")


@pytest.fixture(scope="module")
def place(redis_server: RedisServer) -> Iterator[RedisDatabase]:
    place = RedisDatabase(redis_server)
    bench = place.bench()
    staged(bench)
    bench.dispatch(lane=LANE)
    (attempt,) = bench.claim(lanes=[LANE]).attempts
    bench.retry(attempt, delay_ms=1_000)
    bench.store.close()
    yield place
    place.close()


@pytest.fixture
def keys(place: RedisDatabase) -> Iterator[Any]:
    """All keys are as before in the end."""
    before = {key: place.client.dump(key) for key in place.client.keys("*")}
    yield place.client
    place.client.flushdb()
    for key, dump in before.items():
        place.client.restore(key, 0, dump)


def some_key(client: Any, pattern: str) -> Any:
    return min(client.keys(P + pattern.encode()))


def test_a_store_in_which_all_has_happened_is_sound(place: RedisDatabase) -> None:
    assert place.recount() == []


@pytest.mark.parametrize("pattern", SETS)
def test_a_set_with_one_too_few_and_one_too_many_is_found(place: RedisDatabase, keys: Any, pattern: str) -> None:
    key = some_key(keys, pattern)
    ((member, score),) = keys.zpopmin(key)
    assert place.recount() != []
    keys.zadd(key, {member: score})
    assert place.recount() == []
    keys.zadd(key, {b"x" * 16 + b"1": 1})
    assert place.recount() != []


@pytest.mark.parametrize("pattern", ["w:*", "later:*", "b:*", "expiry", "leases"])
def test_a_time_that_is_not_the_rows_is_found(place: RedisDatabase, keys: Any, pattern: str) -> None:
    key = some_key(keys, pattern)
    keys.zincrby(key, 1, keys.zrange(key, 0, 0)[0])
    assert place.recount() != []


@pytest.mark.parametrize("pattern", COUNTS)
def test_a_number_that_is_not_that_of_the_rows_is_found(place: RedisDatabase, keys: Any, pattern: str) -> None:
    key = some_key(keys, pattern)
    keys.hincrby(key, min(keys.hkeys(key)), 1)
    assert place.recount() != []


@pytest.mark.parametrize(
    ("command", "pattern", "rest"),
    [
        ("HDEL", "ids:L", ()),
        ("HDEL", "hot", ()),
        ("HDEL", "kinds", ()),
        ("SETRANGE", "d:0", (16, b"\x02")),
        ("HINCRBY", "meta", (b"jobs", 1)),
        ("DEL", "p:*", ()),
        ("DEL", "ends:6", ()),
        ("DEL", "h:*", ()),
        ("ZPOPMIN", "unique:until", ()),
    ],
)
def test_what_else_does_not_fit_is_found(
    place: RedisDatabase, keys: Any, command: str, pattern: str, rest: tuple[Any, ...]
) -> None:
    key = some_key(keys, pattern)
    fields = [min(keys.hkeys(key))] if command == "HDEL" else rest
    keys.execute_command(command, key, *fields)
    assert place.recount() != []
