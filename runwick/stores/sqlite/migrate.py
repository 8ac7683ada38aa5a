"""Brings a SQLite file to the revision of this release. The only part of Runwick that creates a file or a table.

Migrations go forward only. Each is one transaction that also records it, and a new store is made in one, so a migrator
may be killed, run twice or run beside another one: who comes second finds the record and does nothing::

    examine the place ─▶ compare the record with this release ─▶ switch to WAL ─▶ until it is this release's revision:
        BEGIN IMMEDIATE ─▶ compare the record again ─▶ compare the schema ─▶ apply, record ─▶ COMMIT
"""

import functools
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.errors import MigrationError, StoreError, StoreProfileMismatch
from runwick.contracts.identity import id_text
from runwick.runtime.crossings import reach
from runwick.stores.migrations import Migration, MigrationResult, migrations
from runwick.stores.sqlite import faults, opening
from runwick.stores.sqlite.revision import FOLDER
from runwick.stores.sqlite.statements import sql

LOCK_WAIT_S: Final = 5.0
_WAL_PAUSE_S: Final = 0.01

Objects = dict[tuple[str, str], tuple[str, str | None]]
"""Tables, indexes and triggers of a schema: (type, name) to (table, text)."""


def migrate(
    path: Path, clock: Clock, ids: Ids, *, folder: Path = FOLDER, lock_wait_s: float = LOCK_WAIT_S
) -> MigrationResult:
    """Create the file and its schema, or bring them up to date.

    Args:
        path: absolute; its directory must exist.
        clock: for the record of what was applied when.
        ids: gives a new store its identity.
        folder: where the migrations lie.
        lock_wait_s: how long to wait for another migrator or writer.

    Raises:
        StoreError: the place is refused; nothing was created.
        MigrationError: the store stays at its last good revision; the code says why.
    """
    opening.examine_place(path)
    if not path.parent.is_dir():
        raise StoreError("invalid_store", f"the directory {path.parent} does not exist; create it and run again")
    migrator = _Migrator(path, clock, ids, migrations(folder), lock_wait_s)
    try:
        return migrator.run()
    except sqlite3.Error as error:
        raise _meaning(error, path, lock_wait_s) from error
    finally:
        migrator.connection.close()


class _Migrator:
    """One run over one file."""

    def __init__(self, path: Path, clock: Clock, ids: Ids, released: tuple[Migration, ...], lock_wait_s: float) -> None:
        self.connection: Final = opening.plain_connection(path, "rwc", lock_wait_s)
        self._path = path
        self._clock = clock
        self._ids = ids
        self._released = released
        self._lock_wait_s = lock_wait_s

    def run(self) -> MigrationResult:
        self._applied()
        self.connection.execute("PRAGMA synchronous = FULL")
        self._switch_to_wal()
        applied: list[str] = []
        while brought := self._bring():
            applied += brought
        (store_id,) = self.connection.execute(sql("store_id")).fetchone()
        return MigrationResult(id_text(store_id), len(self._released), tuple(applied))

    def _bring(self) -> list[str]:
        """Take one step in one transaction: the whole way from nothing, else the next migration; [] when it is done."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            revision = self._applied()
            self._compare_schema(revision)
            missing = self._released[revision:]
            if revision == 0:
                self._create(missing)
            else:
                missing = missing[:1]
                self._apply(missing)
            reach("sqlite.migration_applied")
            self._commit()
            reach("sqlite.migration_committed")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        return [migration.label for migration in missing]

    def _commit(self) -> None:
        try:
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            if faults.refuses_commit(error):
                raise
            raise MigrationError(
                "migration_connection_lost",
                f"the answer to a migration's commit was lost ({error}); {self._path} has it whole or not at all; run "
                "again, it goes on where it stopped",
            ) from error

    def _create(self, all_of_them: Sequence[Migration]) -> None:
        self.connection.execute(sql("migration_table"))
        self._apply(all_of_them)
        # Last, so that no migration takes the new store for one that it found.
        self.connection.execute(sql("store_create"), (self._ids.ordered(), self._clock.now_ms()))

    def _apply(self, some: Sequence[Migration]) -> None:
        for migration in some:
            for statement in _statements(migration.text):
                self.connection.execute(statement)
            record = (migration.number, migration.name, migration.checksum, self._clock.now_ms())
            self.connection.execute(sql("migration_record"), record)

    def _applied(self) -> int:
        """How many migrations the file has.

        Raises:
            MigrationError: they are not this release's.
        """
        if ("table", "runwick_migration") not in _objects(self.connection):
            return 0
        rows = self.connection.execute(sql("migrations_applied")).fetchall()
        if len(rows) > len(self._released):
            raise MigrationError(
                "migration_unknown",
                f"{self._path} has revision {len(rows)}, this release knows {len(self._released)}: the store is newer; "
                "use the release that migrated it, or restore a backup",
            )
        for (number, name, checksum), migration in zip(rows, self._released, strict=False):
            if (number, name, checksum) != (migration.number, migration.name, migration.checksum):
                raise MigrationError(
                    "migration_checksum_mismatch",
                    f"{self._path} was migrated with {number:04}_{name} of another build (its checksum begins with "
                    f"{checksum[:12]}, this build's with {migration.checksum[:12]}); use the build that migrated it",
                )
        return len(rows)

    def _compare_schema(self, revision: int) -> None:
        """Compare what the file holds with what the first `revision` migrations make. Other tables are not ours.

        Raises:
            MigrationError: something of ours is missing or differs, or something was added to a table of ours.
        """
        expected = _made_by(self._released[:revision])
        ours = {name for kind, name in expected if kind == "table"}
        found = {key: value for key, value in _objects(self.connection).items() if key in expected or value[0] in ours}
        wrong = [key for key in {**expected, **found} if expected.get(key) != found.get(key)]
        if wrong:
            listed = ", ".join(f"{kind} {name}" for kind, name in sorted(wrong))
            raise MigrationError(
                "schema_validation_failed",
                f"{self._path} differs from revision {revision} of this release in: {listed}; repair it or restore a "
                "backup, then run again",
            )

    def _switch_to_wal(self) -> None:
        """Switch the file to WAL; SQLite does not wait by itself for another process that does the same.

        Raises:
            StoreProfileMismatch: the file cannot be in WAL mode.
        """
        deadline = time.monotonic() + self._lock_wait_s
        while True:
            try:
                (journal,) = self.connection.execute("PRAGMA journal_mode = WAL").fetchone()
                break
            except sqlite3.OperationalError as error:
                if not faults.is_lock(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_WAL_PAUSE_S)
        if journal != "wal":
            raise StoreProfileMismatch(
                "store_profile_mismatch",
                f"{self._path} stays in journal mode {journal} although wal was set; put it on another file system",
            )


def _statements(text: str) -> Iterator[str]:
    """The statements of a migration, each of which ends at the end of a line."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _objects(connection: sqlite3.Connection) -> Objects:
    rows = connection.execute(sql("schema_objects")).fetchall()
    return {(kind, name): (table, text) for kind, name, table, text in rows}


@functools.cache
def _made_by(released: tuple[Migration, ...]) -> Objects:
    """What these migrations make of an empty database."""
    if not released:
        return {}
    scratch = sqlite3.connect(":memory:", isolation_level=None)
    try:
        scratch.execute(sql("migration_table"))
        for migration in released:
            for statement in _statements(migration.text):
                scratch.execute(statement)
        return _objects(scratch)
    finally:
        scratch.close()


def _meaning(error: sqlite3.Error, path: Path, lock_wait_s: float) -> Exception:
    if faults.is_lock(error):
        return MigrationError(
            "migration_lock_timeout",
            f"another process kept {path} locked for more than {lock_wait_s * 1000:.0f} ms; stop the processes that "
            "use it or wait for the other migrator, then run again",
        )
    if faults.result_code(error) == sqlite3.SQLITE_NOTADB:
        return StoreError("invalid_store", f"{path} is not a SQLite database; nothing was written; name another file")
    meant = faults.before_commit(error, "migrate", path, lock_wait_s)
    if meant is not error:
        return meant
    return MigrationError(
        "schema_validation_failed", f"{path} cannot take the schema ({error}); repair it or restore a backup"
    )
