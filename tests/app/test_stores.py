from pathlib import Path

import psycopg
import pytest

from runwick import ConfigurationError
from runwick.app.stores import (
    describe_store,
    migrate_store,
    open_administration,
    open_store,
    provider_of,
    resolve_url,
)
from runwick.config.options import PostgresOptions, StoreOptions
from runwick.contracts.errors import StoreProfileMismatch
from runwick.runtime.ambient import SystemClock, SystemIds


@pytest.mark.parametrize(
    ("url", "resolved"),
    [
        ("sqlite:///jobs.db", "sqlite:////srv/shop/jobs.db"),
        ("sqlite:////var/jobs.db", "sqlite:////var/jobs.db"),
        ("sqlite:///a%23b%3F%25.db", "sqlite:////srv/shop/a%23b%3F%25.db"),
        ("memory://", "memory://"),
        ("postgresql://db.example/app?sslmode=require", "postgresql://db.example/app?sslmode=require"),
        ("postgres://me:secret@db.example:6432/app", "postgres://me:secret@db.example:6432/app"),
        ("redis://:secret@redis.example:6380/2", "redis://:secret@redis.example:6380/2"),
        ("redis+unix:///run/redis.sock?db=2", "redis+unix:///run/redis.sock?db=2"),
    ],
)
def test_a_resolved_url_names_the_same_place_everywhere(url: str, resolved: str) -> None:
    assert resolve_url(url, Path("/srv/shop")) == resolved
    assert resolve_url(resolved, Path("/elsewhere")) == resolved


@pytest.mark.parametrize("url", ["", "jobs.db", "/srv/jobs.db", "SQLITE:///jobs.db", "oracle://:secret@host", "://x"])
def test_an_unknown_url_is_refused_without_being_repeated(url: str) -> None:
    for use in (
        lambda: resolve_url(url, Path("/")),
        lambda: open_store(url, StoreOptions(), SystemClock(), SystemIds()),
        lambda: migrate_store(url, SystemClock(), SystemIds()),
        lambda: open_administration(url, SystemClock(), SystemIds()),
        lambda: describe_store(url),
        lambda: provider_of(url),
    ):
        with pytest.raises(ConfigurationError) as caught:
            use()
        assert caught.value.code == "invalid_store"
        assert "secret" not in str(caught.value)


def use(url: str, shown: str) -> None:
    """Migrate, open and administer the store at a URL."""
    result = migrate_store(url, SystemClock(), SystemIds())
    assert result is not None
    store = open_store(url, StoreOptions(), SystemClock(), SystemIds())
    try:
        store.check()
        assert store.description == describe_store(url)
        assert store.description.startswith(shown)
    finally:
        store.close()
    administration = open_administration(url, SystemClock(), SystemIds())
    assert administration.status().revision == result.revision
    assert administration.description == shown
    administration.close()


def test_a_file_is_migrated_opened_and_administered(tmp_path: Path) -> None:
    use(resolve_url("sqlite:///jobs.db", tmp_path), f"sqlite {tmp_path}/jobs.db")


def test_a_database_is_migrated_opened_and_administered(empty_database: str) -> None:
    use(resolve_url(empty_database, Path("/")), f"postgres {empty_database.rpartition('@')[2]}")


def test_a_redis_database_is_migrated_opened_and_administered(bare_redis: str) -> None:
    use(resolve_url(bare_redis, Path("/")), f"redis {bare_redis.rpartition('@')[2]}")


@pytest.mark.parametrize("url", ["redis://a:1,b:2/0", "redis+sentinel://:secret@a/main", "rediss+cluster://:secret@a"])
def test_several_redis_servers_are_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_url(url, Path("/"))
    assert caught.value.code == "topology_unsupported"
    assert "secret" not in str(caught.value)


def test_an_unsafe_database_is_migrated_when_the_options_say_so(empty_database: str) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET synchronous_commit = off'.encode())
    with pytest.raises(StoreProfileMismatch):
        migrate_store(empty_database, SystemClock(), SystemIds())
    accepted = StoreOptions(postgres=PostgresOptions(allow_unsafe_durability=True))
    assert migrate_store(empty_database, SystemClock(), SystemIds(), accepted) is not None


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("sqlite:///jobs.db", "sqlite"),
        ("postgresql://db/app", "postgres"),
        ("postgres://db/app", "postgres"),
        ("redis://cache/0", "redis"),
        ("rediss://cache/0", "redis"),
        ("redis+unix:///run/redis.sock", "redis"),
        ("memory://", "memory"),
    ],
)
def test_the_scheme_says_which_kind_of_store_it_is(url: str, provider: str) -> None:
    assert provider_of(url) == provider


def test_a_store_in_memory_needs_no_migration_and_no_operator() -> None:
    assert migrate_store("memory://", SystemClock(), SystemIds()) is None
    with pytest.raises(ConfigurationError, match="belongs to its process"):
        open_administration("memory://", SystemClock(), SystemIds())
