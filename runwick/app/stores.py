"""From a store's URL to the store. The only place that knows all of them; each is imported when it is named.

A URL may hold a password, so it is never part of a message, a log line or a repr.
"""

import re
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runwick.config.options import StoreOptions
from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.contracts.stores import Store

if TYPE_CHECKING:
    from runwick.stores.migrations import MigrationResult
    from runwick.stores.sqlite.store import SqliteStore

SQLITE: Final = "sqlite"
MEMORY: Final = "memory"
"""A store that lives and dies with its process, for tests."""

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]{0,31})://")


def resolve_url(url: str, base: Path) -> str:
    """The URL as it holds wherever it is read: a relative path is made absolute.

    Args:
        url: the store as the user named it.
        base: the directory that a relative path is relative to.

    Raises:
        ConfigurationError: no store of this release has such a URL (code ``invalid_store``), or the place it names
            cannot keep jobs safe (``invalid_policy``).
    """
    if _scheme(url) == MEMORY:
        return url
    # Imported where the application is declared and not when it is first used: a fork in the middle of an import by
    # another thread leaves the child waiting for that import for ever.
    _sqlite_store()
    from runwick.stores.sqlite.address import path_of

    return f"{SQLITE}://{urllib.parse.quote(f'/{path_of(url, base)}')}"


def open_store(url: str, options: StoreOptions, clock: Clock, ids: Ids) -> Store:
    """The store at a resolved URL; it connects at its first use.

    Raises:
        ConfigurationError: see `resolve_url`.
    """
    if _scheme(url) == MEMORY:
        from runwick.stores.memory.store import MemoryStore

        return MemoryStore(clock=clock, ids=ids)
    from runwick.stores.sqlite.address import path_of

    return _sqlite_store()(path_of(url, Path.cwd()), options=options.sqlite, clock=clock, ids=ids)


def migrate_store(url: str, clock: Clock, ids: Ids) -> "MigrationResult | None":
    """Create the store at a resolved URL or bring it to this release's revision; None where there is nothing to do.

    Raises:
        ConfigurationError: see `resolve_url`.
        MigrationError: the store stays at its last good revision.
    """
    if _scheme(url) == MEMORY:
        return None
    from runwick.stores.sqlite.address import path_of
    from runwick.stores.sqlite.migrate import migrate

    return migrate(path_of(url, Path.cwd()), clock, ids)


def _sqlite_store() -> "type[SqliteStore]":
    from runwick.stores.sqlite.store import SqliteStore

    return SqliteStore


def _scheme(url: str) -> str:
    found = _SCHEME.match(url)
    if found is None:
        raise _refusal("a store is named by a URL such as sqlite:///jobs.db, this is none")
    if found[1] not in (SQLITE, MEMORY):
        raise _refusal(f"{found[1]}:// is no store of this release; use sqlite:///FILE")
    return found[1]


def _refusal(sentence: str) -> ConfigurationError:
    return ConfigurationError([Problem("invalid_store", "store", f"{sentence}.")])
