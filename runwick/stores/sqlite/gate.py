"""The gate: what every transaction meets before its act, read in one statement.

::

    BEGIN ─▶ revision of this release? ─▶ the store we know? ─▶ the store's time ─▶ act ─▶ is its application admitted?

What an operator changes holds from the next transaction on, and a change waits for the transactions before it: it takes
SQLite's write lock like any other. The gate writes nothing and decides nothing about jobs.
"""

import sqlite3
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from runwick.contracts.administration import Admission, Capability, admits
from runwick.contracts.dispatching import Command
from runwick.contracts.errors import StoreError
from runwick.stores import refusals
from runwick.stores.sqlite import faults, opening
from runwick.stores.sqlite.clock import StoreClock
from runwick.stores.sqlite.statements import sql

_NOBODY: Final = "[]"
_KNOWN: Final = frozenset(capability.value for capability in Capability)


class _Barred(NamedTuple):
    """An application that may not do everything."""

    name: str
    mode: Admission
    unknown: str | None
    """A capability that this release does not know."""


class Gate:
    """What one store object knows of its store, whatever is opened and closed meanwhile.

    Args:
        path: the store's file.
        clock: the store's time, which is told how late it is in the file.
    """

    def __init__(self, path: Path, clock: StoreClock) -> None:
        self.store_id: bytes | None = None
        """The identity of the store that was met first; None before that."""
        self._path: Final = path
        self._clock: Final = clock
        self._barred: dict[str | int, _Barred] = {}

    def enter(self, connection: sqlite3.Connection, *, writes: bool) -> None:
        """Check what the transaction on `connection` has met.

        Args:
            connection: has just begun it.
            writes: whether acts will ask `admit`. Writers take turns, so what they find is never another's.

        Raises:
            StoreRevisionMismatch: the store belongs to another release.
            StoreHistoryBroken: it is another store than before.
        """
        revision, store_id, seen_ms, barred = self._look(connection)
        opening.check_revision(revision, self._path)
        if self.store_id is None:
            self.store_id = store_id
        elif store_id != self.store_id:
            raise refusals.identity_mismatch(self.store_id, store_id)
        if seen_ms is not None:
            self._clock.reach(seen_ms)
        if writes:
            self._barred = {} if barred == _NOBODY else _by_name_and_number(barred)

    def refusal(self, act: str, application: str | int) -> StoreError | None:
        """Why this application, by its name or its number, may not run the act now; None when it may."""
        barred = self._barred.get(application)
        if barred is None:
            return None
        if not admits(barred.mode, act):
            return refusals.admission_closed(barred.name, barred.mode, act)
        is_new_work = not admits(Admission.DRAIN, act)
        if is_new_work and barred.unknown is not None:
            return refusals.capability_unknown(barred.name, barred.unknown)
        return None

    def admit(self, act: str, application: str | int) -> None:
        """Go on only if this application, by its name or its number, may run the act now.

        Raises:
            AdmissionClosed: its mode does not admit the act.
            StoreError: it has a capability that this release does not know (code ``capability_unknown``).
        """
        if (refusal := self.refusal(act, application)) is not None:
            raise refusal

    def check_meant(self, command: Command) -> None:
        """Go on only if the command is meant for this store, or for any.

        Raises:
            StoreHistoryBroken: it is not.
        """
        if command.store_id is not None and self.store_id is not None and command.store_id != self.store_id:
            raise refusals.identity_mismatch(command.store_id, self.store_id)

    def _look(self, connection: sqlite3.Connection) -> tuple[Any, ...]:
        try:
            (found,) = connection.execute(sql("enter")).fetchall()
        except sqlite3.OperationalError as error:
            if faults.result_code(error) == sqlite3.SQLITE_ERROR:
                # The tables of another revision. Its number says it better than the missing name.
                opening.check_revision(opening.installed_revision(connection, self._path), self._path)
            raise
        row: tuple[Any, ...] = found
        return row


def _by_name_and_number(applications: str) -> dict[str | int, _Barred]:
    barred: dict[str | int, _Barred] = {}
    rows = msgspec.json.decode(applications, type=list[tuple[int, str, str, list[str]]])
    for number, name, admission, capabilities in rows:
        unknown = min(set(capabilities) - _KNOWN, default=None)
        mode = Admission(admission)
        if mode is not Admission.OPEN or unknown is not None:
            barred[number] = barred[name] = _Barred(name, mode, unknown)
    return barred
