"""Brings a PostgreSQL database to the revision of this release. The only part of Runwick that creates the schema.

Migrations go forward only. Each is one transaction that also records it, so a migrator may be killed, run twice or run
beside another one, for which it waits::

    examine the server ─▶ be the only migrator ─▶ compare the record with this release ─▶ replay ─▶ compare the schema
      for each migration: BEGIN ─▶ wait until no act runs ─▶ apply, record ─▶ compare the schema ─▶ COMMIT
      a dump from another server was read back: BEGIN ─▶ wait until no act runs ─▶ forget its transactions ─▶ COMMIT

An act of the old release either ended before, or is refused for its revision afterwards.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg
from psycopg import errors

from runwick.contracts.administration import Capability
from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.errors import MigrationError
from runwick.contracts.identity import id_text
from runwick.runtime.crossings import reach
from runwick.stores.migrations import Migration, MigrationResult, migrations
from runwick.stores.postgres import faults, schema, server
from runwick.stores.postgres.address import Address
from runwick.stores.postgres.operating import LOCK_PATIENCE_S, Session, ask, session, while_no_act_runs
from runwick.stores.postgres.revision import FOLDER

MIGRATOR_WAIT_S: Final = 60.0


def migrate(
    address: Address,
    clock: Clock,
    ids: Ids,
    *,
    folder: Path = FOLDER,
    lock_wait_s: float = MIGRATOR_WAIT_S,
    statement_lock_s: float = LOCK_PATIENCE_S,
    allow_unsafe_durability: bool = False,
) -> MigrationResult:
    """Create the schema, or bring it up to date.

    Args:
        address: of a database that exists; its role may create a schema there.
        clock: for the record of what was applied when.
        ids: gives a new store its identity.
        folder: where the migrations lie.
        lock_wait_s: how long to wait for another migrator.
        statement_lock_s: how long to try for a moment in which no act runs.
        allow_unsafe_durability: the operator accepts a server that can lose what it confirmed.

    Raises:
        StoreError: the server is refused or cannot be reached; nothing was written.
        MigrationError: the store stays at its last good revision; the code says why.
    """
    lost = MigrationError(
        "migration_connection_lost",
        f"the connection to {address.shown} was lost while it was migrated; run it again, it goes on where it stopped",
    )
    with session(address, lost, answer_s=None) as connection:
        (facts,) = ask(connection, "server")
        server.examine(server.Server(*facts), address.shown, allow_unsafe_durability=allow_unsafe_durability)
        _be_the_only_migrator(connection, address, lock_wait_s)
        result = _Migrator(connection, address, clock, ids, migrations(folder), statement_lock_s).run()
        if folder == FOLDER:
            _forget_foreign_transactions(connection, statement_lock_s)
        return result


def _forget_foreign_transactions(connection: Session, statement_lock_s: float) -> None:
    """A dump brings along the transactions of the server that it was taken from. On one that has not counted as far,
    they would keep their rows from the readers of events."""
    ((is_foreign,),) = ask(connection, "xids_foreign")
    if is_foreign:
        while_no_act_runs(connection, lambda: ask(connection, "xids_forget"), statement_lock_s)


def _be_the_only_migrator(connection: Session, address: Address, wait_s: float) -> None:
    try:
        ask(connection, "session_patience", int(wait_s * 1000))
        ask(connection, "migration_lock")
        ask(connection, "session_patience", 0)
    except errors.LockNotAvailable:
        raise MigrationError(
            "migration_lock_unavailable",
            f"another migrator has been at work on {address.shown} for more than {wait_s * 1000:.0f} ms; wait for it, "
            "then run again",
        ) from None


class _Migrator:
    """One run over one database, in which there is no other migrator."""

    def __init__(
        self,
        connection: Session,
        address: Address,
        clock: Clock,
        ids: Ids,
        released: tuple[Migration, ...],
        statement_lock_s: float,
    ) -> None:
        self._connection = connection
        self._address = address
        self._clock = clock
        self._ids = ids
        self._released = released
        self._statement_lock_s = statement_lock_s
        self._expected: list[schema.Objects] = []

    def run(self) -> MigrationResult:
        applied = self._applied()
        with self._taking("the migrations of this release"):
            self._expected = schema.replayed(self._connection, self._released)
        if applied:
            self._compare_schema(applied)
        pending = self._released[applied:]
        for migration in pending:
            with self._taking(migration.label):
                self._bring(migration)
            reach("postgres.migrated")
        ((store_id,),) = ask(self._connection, "store_id")
        return MigrationResult(str(store_id), len(self._released), tuple(migration.label for migration in pending))

    def _bring(self, migration: Migration) -> None:
        """Apply one migration in a transaction."""

        def apply() -> None:
            self._apply(migration)
            self._compare_schema(migration.number)
            reach("postgres.migration_applied")

        if migration.number > 1:
            while_no_act_runs(self._connection, apply, self._statement_lock_s)
        else:
            with self._connection.transaction():
                ask(self._connection, "migration_schema")
                apply()

    def _apply(self, migration: Migration) -> None:
        now_ms = self._clock.now_ms()
        self._connection.execute(migration.text.encode())
        ask(self._connection, "migration_record", migration.number, migration.name, migration.checksum, now_ms)
        if migration.number == 1:
            ask(self._connection, "store_create", id_text(self._ids.ordered()), now_ms, [*Capability])

    def _applied(self) -> int:
        """How many migrations the store has.

        Raises:
            MigrationError: they are not this release's.
        """
        ((known,),) = ask(self._connection, "migration_known")
        rows = ask(self._connection, "migrations_applied") if known else []
        if len(rows) > len(self._released):
            raise MigrationError(
                "migration_unknown",
                f"{self._address.shown} has revision {len(rows)}, this release knows {len(self._released)}: the store "
                "is newer; use the release that migrated it, or restore a backup",
            )
        for (number, name, checksum), migration in zip(rows, self._released, strict=False):
            if (number, name, checksum) != (migration.number, migration.name, migration.checksum):
                raise MigrationError(
                    "migration_checksum_mismatch",
                    f"{self._address.shown} was migrated with {number:04}_{name} of another build (its checksum "
                    f"begins with {checksum[:12]}, this build's with {migration.checksum[:12]}); use the build that "
                    "migrated it",
                )
        return len(rows)

    def _compare_schema(self, revision: int) -> None:
        """Compare what the schema holds with what the first `revision` migrations make.

        Raises:
            MigrationError: something of ours is missing or differs, or something hangs on a table of ours.
        """
        wrong = schema.differences(self._expected[revision], schema.objects(self._connection))
        if wrong:
            raise MigrationError(
                "schema_validation_failed",
                f"{self._address.shown} differs from revision {revision} of this release in: {', '.join(wrong)}; "
                "repair it or restore a backup, then run again",
            )

    @contextlib.contextmanager
    def _taking(self, what: str) -> Iterator[None]:
        """Say that the database's content is what refuses a migration, where it is."""
        try:
            yield
        except errors.InsufficientPrivilege:
            raise
        except (psycopg.ProgrammingError, psycopg.DataError, psycopg.IntegrityError) as error:
            raise MigrationError(
                "schema_validation_failed",
                f"{self._address.shown} cannot take {what} ({faults.first_line(error)}); repair it or restore a "
                "backup, then run again",
            ) from error
