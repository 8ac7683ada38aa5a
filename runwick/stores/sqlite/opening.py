"""How a connection to the store's file is opened: examined, set up and read back. It never creates a file.

Every refusal names the absolute path and says what to do.
"""

import os
import sqlite3
import urllib.parse
from pathlib import Path
from typing import Final

from runwick.contracts.errors import (
    StoreError,
    StoreProfileMismatch,
    StoreRevisionMismatch,
    StoreUnavailable,
)
from runwick.runtime.filesystems import MOUNTS, Trust, filesystem_of
from runwick.stores.sqlite import faults
from runwick.stores.sqlite.revision import REVISION
from runwick.stores.sqlite.statements import sql

Version = tuple[int, int, int]

ENGINE_MIN: Final[Version] = (3, 38, 0)

_STATEMENTS_CACHED: Final = 256
_SET_AND_READ_BACK: Final = {"foreign_keys": 1, "synchronous": 2, "wal_autocheckpoint": 0}
"""Settings of every connection: on, FULL, and no checkpoints but our own."""


def examine_place(
    path: Path, *, engine: Version = sqlite3.sqlite_version_info, mounts: Path = MOUNTS
) -> tuple[str, ...]:
    """Check what does not depend on the file's content: the SQLite library and the file system.

    Args:
        path: absolute; the file need not exist.
        engine: the library's version.
        mounts: the kernel's table of mounts.

    Returns:
        What the operator should know although the store may be used, one sentence each.

    Raises:
        StoreError: ``engine_version_unsupported`` or ``filesystem_unsupported``.
    """
    shown = ".".join(map(str, engine))
    if engine < ENGINE_MIN:
        raise StoreError(
            "engine_version_unsupported",
            f"this Python uses SQLite {shown}, Runwick needs 3.38 or newer; use a Python with a newer SQLite",
        )
    place = filesystem_of(Path(os.path.realpath(path)), mounts)
    if place.trust is Trust.NETWORK:
        raise StoreError(
            "filesystem_unsupported",
            f"{path} lies on a network file system ({place.kind}), where SQLite's locks cannot be trusted; "
            "put the file on a local disk",
        )
    notes = []
    if place.trust is Trust.UNVERIFIED:
        notes.append(f"{path} lies on a file system ({place.kind}) that is not verified to be local; keep it local")
    if resets_log_unsafely(engine):
        notes.append(
            f"SQLite {shown} has a fault in checkpoints, which Runwick's own avoid; other programs that write to this "
            "file need SQLite 3.51.3 (or 3.50.7, 3.44.6) or newer, or PRAGMA wal_autocheckpoint=0"
        )
    return tuple(notes)


def resets_log_unsafely(engine: Version) -> bool:
    """Whether this version of SQLite has the fault that a log reset can meet a running checkpoint."""
    return not (engine >= (3, 51, 3) or (3, 50, 7) <= engine < (3, 51, 0) or (3, 44, 6) <= engine < (3, 45, 0))


def connect(path: Path, wait_s: float, *, reads_only: bool = False) -> sqlite3.Connection:
    """Open the store's file with the settings that every connection has, read back.

    Args:
        path: absolute.
        wait_s: how long SQLite waits for a lock.
        reads_only: refuse writes on this connection.

    Raises:
        StoreError: with the code of what is wrong.
    """
    if not path.exists():
        raise faults.not_installed(path, "there is no file")
    if not path.is_file():
        raise faults.not_installed(path, "it is not a file")
    if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK)):
        raise StoreUnavailable(
            "store_unavailable", f"this user may not write to {path} and its directory; change their permissions"
        )
    connection = plain_connection(path, "rw", wait_s)
    try:
        check_revision(installed_revision(connection, path), path)
        set_up(connection, path)
        if reads_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise faults.before_commit(error, "open", path, wait_s) from error
        raise
    return connection


def plain_connection(path: Path, mode: str, wait_s: float) -> sqlite3.Connection:
    """A connection without any setting; `mode` is ``rw`` or ``rwc``, where only the latter creates the file."""
    return sqlite3.connect(
        f"file:{urllib.parse.quote(os.fsencode(path))}?mode={mode}",
        uri=True,
        timeout=wait_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS_CACHED,
    )


def installed_revision(connection: sqlite3.Connection, path: Path) -> int:
    """The revision of the store in this file.

    Raises:
        StoreNotInstalled: it holds none.
    """
    try:
        (revision,) = connection.execute(sql("revision")).fetchone()
    except sqlite3.DatabaseError as error:
        code = faults.result_code(error)
        if code == sqlite3.SQLITE_NOTADB:
            raise faults.not_installed(path, "it is not a SQLite database") from None
        if code != sqlite3.SQLITE_ERROR:
            raise
        revision = None  # there is no such table
    if not isinstance(revision, int):
        raise faults.not_installed(path, "the database has no Runwick schema")
    return revision


def check_revision(found: int, path: Path) -> None:
    """Compare a store's revision with the one of this release.

    Raises:
        StoreRevisionMismatch: they differ.
    """
    if found > REVISION:
        raise StoreRevisionMismatch(
            "store_revision_mismatch",
            f"{path} has revision {found}, this release works with {REVISION}: the store is newer; use the release "
            "that migrated it",
        )
    if found < REVISION:
        raise StoreRevisionMismatch(
            "store_revision_mismatch",
            f"{path} has revision {found}, this release works with {REVISION}: the store is older; stop the processes "
            "of the old release and run `runwick migrate`",
        )


def set_up(connection: sqlite3.Connection, path: Path) -> None:
    """Set what every connection has, and read it back.

    Raises:
        StoreProfileMismatch: something did not stick, or the file is not in WAL mode.
    """
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    if journal != "wal":
        raise StoreProfileMismatch(
            "store_profile_mismatch",
            f"{path} has journal mode {journal}, expected wal; run `runwick migrate`, which sets it",
        )
    for setting, value in _SET_AND_READ_BACK.items():
        connection.execute(f"PRAGMA {setting} = {value}")
        (found,) = connection.execute(f"PRAGMA {setting}").fetchone()
        if found != value:
            raise StoreProfileMismatch(
                "store_profile_mismatch",
                f"the connection to {path} has {setting} = {found} although {value} was set; "
                "use a Python whose SQLite keeps it",
            )
