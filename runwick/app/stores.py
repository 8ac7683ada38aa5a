"""From a store's URL to the store. The only place that knows all of them; each is imported when it is named.

A URL may hold a password, so it is never part of a message, a log line or a repr.
"""

import contextlib
import re
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runwick.config.options import StoreOptions
from runwick.contracts.administration import Administration
from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.contracts.stores import Store
from runwick.runtime.ambient import SystemClock, SystemIds

if TYPE_CHECKING:
    from runwick.stores.migrations import MigrationResult
    from runwick.stores.postgres.store import PostgresStore
    from runwick.stores.redis.store import RedisStore
    from runwick.stores.sqlite.store import SqliteStore

SQLITE: Final = "sqlite"
POSTGRES: Final = "postgres"
REDIS: Final = "redis"
MEMORY: Final = "memory"
"""A store that lives and dies with its process, for tests."""

_PROVIDERS: Final = {
    "sqlite": SQLITE,
    "postgresql": POSTGRES,
    "postgres": POSTGRES,
    "redis": REDIS,
    "rediss": REDIS,
    "redis+unix": REDIS,
    "redis+sentinel": REDIS,
    "rediss+sentinel": REDIS,
    "redis+cluster": REDIS,
    "rediss+cluster": REDIS,
    "memory": MEMORY,
}
"""Kinds of stores by the schemes of their URLs; some are known so that the store itself says why it refuses them."""

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]{0,31})://")


def provider_of(url: str) -> str:
    """Which kind of store a URL names.

    Raises:
        ConfigurationError: none of this release (code ``invalid_store``).
    """
    found = _SCHEME.match(url)
    if found is None:
        raise _refusal("a store is named by a URL such as sqlite:///jobs.db, this is none")
    if found[1] not in _PROVIDERS:
        raise _refusal(
            f"{found[1]}:// is no store of this release; use postgresql://HOST/DATABASE, redis://HOST or sqlite:///FILE"
        )
    return _PROVIDERS[found[1]]


def resolve_url(url: str, base: Path) -> str:
    """The URL as it holds wherever it is read: a relative path is made absolute.

    Args:
        url: the store as the user named it.
        base: the directory that a relative path is relative to.

    Raises:
        ConfigurationError: no store of this release has such a URL (code ``invalid_store``), or the place it names
            cannot keep jobs safe (``invalid_policy``).
    """
    # Drivers are imported where the application is declared and not when it is first used: a fork in the middle of an
    # import by another thread leaves the child waiting for that import for ever.
    match provider_of(url):
        case "memory":
            return url
        case "postgres":
            from runwick.stores.postgres.address import address_of

            _postgres_store()
            address_of(url)
            return url
        case "redis":
            from runwick.stores.redis.address import address_of as redis_address_of

            _redis_store()
            redis_address_of(url)
            return url
        case _:
            from runwick.stores.sqlite.address import path_of

            _sqlite_store()
            return f"{SQLITE}://{urllib.parse.quote(f'/{path_of(url, base)}')}"


def open_store(url: str, options: StoreOptions, clock: Clock, ids: Ids) -> Store:
    """The store at a resolved URL; it connects at its first use.

    Raises:
        ConfigurationError: see `resolve_url`.
    """
    match provider_of(url):
        case "memory":
            from runwick.stores.memory.store import MemoryStore

            return MemoryStore(clock=clock, ids=ids)
        case "postgres":
            from runwick.stores.postgres.address import address_of

            calls = options.concurrent_calls
            return _postgres_store()(
                address_of(url), options=options.postgres, concurrent_calls=calls, clock=clock, ids=ids
            )
        case "redis":
            from runwick.stores.redis.address import address_of as redis_address_of

            calls = options.concurrent_calls
            return _redis_store()(
                redis_address_of(url), options=options.redis, concurrent_calls=calls, clock=clock, ids=ids
            )
        case _:
            return _sqlite_store()(_path(url), options=options.sqlite, clock=clock, ids=ids)


def migrate_store(url: str, clock: Clock, ids: Ids, options: StoreOptions | None = None) -> "MigrationResult | None":
    """Create the store at a resolved URL or bring it to this release's revision; None where there is nothing to do.

    Raises:
        ConfigurationError: see `resolve_url`.
        MigrationError: the store stays at its last good revision.
    """
    match provider_of(url):
        case "memory":
            return None
        case "postgres":
            from runwick.stores.postgres import migrate as postgres
            from runwick.stores.postgres.address import address_of

            allow_unsafe = options is not None and options.postgres.allow_unsafe_durability
            return postgres.migrate(address_of(url), clock, ids, allow_unsafe_durability=allow_unsafe)
        case "redis":
            from runwick.stores.redis import migrate as redis
            from runwick.stores.redis.address import address_of as redis_address_of
            from runwick.stores.redis.library import library

            return redis.migrate(redis_address_of(url), ids, library())
        case _:
            from runwick.stores.sqlite import migrate as sqlite

            return sqlite.migrate(_path(url), clock, ids)


def open_administration(url: str, clock: Clock, ids: Ids) -> Administration:
    """The store at a resolved URL, for its operator.

    Raises:
        ConfigurationError: see `resolve_url`; a store in memory has no operator beside its process
            (code ``invalid_store``).
    """
    match provider_of(url):
        case "memory":
            raise _refusal("a store in memory belongs to its process, there is nothing to administer")
        case "postgres":
            from runwick.stores.postgres.address import address_of
            from runwick.stores.postgres.administer import PostgresAdministration

            return PostgresAdministration(address_of(url), ids)
        case "redis":
            from runwick.stores.redis.address import address_of as redis_address_of
            from runwick.stores.redis.administer import RedisAdministration
            from runwick.stores.redis.library import library

            return RedisAdministration(redis_address_of(url), ids, library())
        case _:
            from runwick.stores.sqlite.administer import SqliteAdministration

            return SqliteAdministration(_path(url), clock, ids)


def describe_store(url: str) -> str:
    """The store at a resolved URL in one phrase of its own, without secrets. It is not connected to.

    Raises:
        ConfigurationError: see `resolve_url`.
    """
    with contextlib.closing(open_store(url, StoreOptions(), SystemClock(), SystemIds())) as store:
        return store.description


def _path(url: str) -> Path:
    from runwick.stores.sqlite.address import path_of

    return path_of(url, Path.cwd())


def _postgres_store() -> "type[PostgresStore]":
    from runwick.stores.postgres.store import PostgresStore

    return PostgresStore


def _redis_store() -> "type[RedisStore]":
    from runwick.stores.redis.store import RedisStore

    return RedisStore


def _sqlite_store() -> "type[SqliteStore]":
    from runwick.stores.sqlite.store import SqliteStore

    return SqliteStore


def _refusal(sentence: str) -> ConfigurationError:
    return ConfigurationError([Problem("invalid_store", "store", f"{sentence}.")])
