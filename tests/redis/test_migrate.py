"""Migration: once, by whoever comes first, on a server that is fit, and never into what is somebody else's."""

import threading

import pytest

from runwick.contracts.administration import Capability
from runwick.contracts.errors import MigrationError, StoreProfileMismatch, StoreUnavailable
from runwick.contracts.identity import id_text
from runwick.runtime.ambient import SystemIds
from runwick.stores.migrations import MigrationResult
from runwick.stores.redis.address import address_of
from runwick.stores.redis.library import library
from runwick.stores.redis.migrate import FIRST, migrate
from runwick.stores.redis.revision import REVISION
from scripts.servers.redis import RedisServer
from tests.postgres.asking import PATIENCE_S
from tests.redis.asking import contents, execute, visitor, writes_paused


def run(url: str, **changes: float) -> MigrationResult:
    return migrate(address_of(url), SystemIds(), library(), **changes)


def test_it_writes_identity_revision_and_capabilities(bare_redis: str) -> None:
    result = run(bare_redis)
    assert (result.revision, result.applied) == (REVISION, (FIRST,))
    store = execute(bare_redis, "HGETALL", "rw:store")
    assert id_text(store[b"id"]) == result.store_id
    assert int(store[b"revision"]) == REVISION
    assert store[b"capabilities"].decode().split(",") == sorted(Capability)
    assert execute(bare_redis, "KEYS", "*") == [b"rw:store"]


def test_a_second_time_it_does_nothing(bare_redis: str) -> None:
    first = run(bare_redis)
    before = contents(bare_redis)
    assert run(bare_redis) == MigrationResult(first.store_id, REVISION, ())
    assert contents(bare_redis) == before


def test_migrators_at_once_make_one_store(bare_redis: str) -> None:
    begin, results = threading.Barrier(4), list[MigrationResult]()

    def migrate_too() -> None:
        begin.wait(PATIENCE_S)
        results.append(run(bare_redis))

    migrators = [threading.Thread(target=migrate_too) for _ in range(4)]
    for migrator in migrators:
        migrator.start()
    for migrator in migrators:
        migrator.join(PATIENCE_S)
    assert len({result.store_id for result in results}) == 1
    assert sorted(result.applied for result in results) == [(), (), (), (FIRST,)]


def test_what_else_is_in_the_database_is_left_alone(bare_redis: str) -> None:
    execute(bare_redis, "SET", "orders", 7)
    run(bare_redis)
    assert execute(bare_redis, "GET", "orders") == b"7"


def test_databases_of_one_server_are_stores_of_their_own(redis_server: RedisServer, bare_redis: str) -> None:
    first = run(bare_redis)
    execute(redis_server.url(0), "FLUSHDB")
    assert run(redis_server.url(0)).store_id != first.store_id


def refusal(url: str, code: str) -> str:
    """How a migrator refuses, after which the database is as before."""
    before = contents(url)
    with pytest.raises(MigrationError) as refused:
        run(url)
    assert refused.value.code == code
    assert address_of(url).shown in refused.value.message
    assert contents(url) == before
    return refused.value.message


def test_a_store_that_is_newer(bare_redis: str) -> None:
    run(bare_redis)
    execute(bare_redis, "HSET", "rw:store", "revision", REVISION + 1)
    said = refusal(bare_redis, "migration_unknown")
    assert f"revision {REVISION + 1}, this release knows {REVISION}: the store is newer" in said


@pytest.mark.parametrize(
    "damage",
    [
        ("HSET", "rw:applications", "shop", 1),
        ("SET", "rw:store", "something else"),
        ("HSET", "rw:store", "revision", REVISION),
        ("HSET", "rw:store", "id", "0123456789abcdef"),
    ],
)
def test_keys_of_a_store_without_its_identity(bare_redis: str, damage: tuple[str, ...]) -> None:
    execute(bare_redis, *damage)
    assert "lacks its identity" in refusal(bare_redis, "schema_validation_failed")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("appendonly", "no"),
        ("appendfsync", "everysec"),
        ("no-appendfsync-on-rewrite", "yes"),
        ("maxmemory-policy", "allkeys-lru"),
        ("aof-load-truncated", "yes"),
    ],
)
def test_a_server_that_can_lose_what_it_confirmed_gets_no_store(bare_redis: str, name: str, value: str) -> None:
    before = execute(bare_redis, "CONFIG", "GET", name)[name.encode()]
    execute(bare_redis, "CONFIG", "SET", name, value)
    try:
        with pytest.raises(StoreProfileMismatch, match=f"{name}={value}"):
            run(bare_redis)
        assert contents(bare_redis) == {}
    finally:
        execute(bare_redis, "CONFIG", "SET", name, before)
    assert run(bare_redis).applied == (FIRST,)


def test_a_server_that_does_not_say_how_it_is_set_gets_no_store(bare_redis: str) -> None:
    with (
        visitor(bare_redis, "+@all", "-config") as visiting,
        pytest.raises(StoreProfileMismatch, match="unverifiable"),
    ):
        run(visiting)
    assert contents(bare_redis) == {}


def test_a_library_that_vanished_is_given_again(bare_redis: str) -> None:
    first = run(bare_redis)
    execute(bare_redis, "FUNCTION", "FLUSH")
    assert run(bare_redis).store_id == first.store_id


def test_its_answer_does_not_come(bare_redis: str) -> None:
    run(bare_redis)  # so that the server has the functions
    execute(bare_redis, "FLUSHDB")
    with writes_paused(bare_redis), pytest.raises(MigrationError, match="it has a store or none") as refused:
        run(bare_redis, answer_s=0.2)
    assert refused.value.code == "migration_connection_lost"
    assert run(bare_redis).revision == REVISION


def test_nobody_is_there() -> None:
    with pytest.raises(StoreUnavailable, match="gives no connection"):
        run("redis://127.0.0.1:1/0")
