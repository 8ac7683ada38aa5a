"""What an operator does to a SQLite store itself.

Every method opens the file, runs one act as any process would, and closes it again. A change takes the write lock like
every other transaction: what began before has ended when it is made, and what begins later meets it at the gate.
"""

import datetime
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from runwick.config.options import SqliteOptions
from runwick.contracts.administration import (
    WORKER_ALIVE_MS,
    Admission,
    ApplicationStatus,
    Capability,
    StoreStatus,
)
from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.errors import MigrationError, StoreRevisionMismatch, StoreUnavailable
from runwick.contracts.stores import Act
from runwick.stores.administration import asked_for, check_admission, check_offline
from runwick.stores.sqlite import faults, opening
from runwick.stores.sqlite.clock import StoreClock
from runwick.stores.sqlite.driver import Driver
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.leased import json_text
from runwick.stores.sqlite.revision import REVISION
from runwick.stores.sqlite.statements import sql
from runwick.stores.steps import Step, Steps

T = TypeVar("T")

_OF_NO_JOB: Final = (None,) * 7
"""What an audit row says besides, where an operator acted on a job."""

LOCK_WAIT: Final = datetime.timedelta(seconds=5)


class SqliteAdministration:
    """The store in one file, as its operator handles it.

    Args:
        path: absolute.
        clock: the host's.
        ids: identities for a store that gets another one.
        lock_wait: how long to wait for the transactions under way.
    """

    def __init__(self, path: Path, clock: Clock, ids: Ids, *, lock_wait: datetime.timedelta = LOCK_WAIT) -> None:
        self._path: Final = path
        self._clock = StoreClock(clock)
        self._ids = ids
        self._options = SqliteOptions(writer_busy_timeout=lock_wait, reader_threads=1)

    @property
    def description(self) -> str:
        return f"sqlite {self._path}"

    def status(self) -> StoreStatus:
        try:
            return self._run("status", self._status, reads_only=True)
        except StoreRevisionMismatch:
            return self._status_of_another_revision()

    def set_admission(self, mode: Admission, application: str | None) -> list[ApplicationStatus]:
        return self._run("set_admission", lambda: self._set_admission(mode, application))

    def activate(self, capability: Capability, application: str, actor: str) -> bool:
        return self._run("activate", lambda: self._activate(capability, application, actor))

    def reidentify(self) -> bytes:
        return self._run("reidentify", self._reidentify)

    def close(self) -> None:
        """Nothing stays open."""

    def _run(self, name: str, steps: Callable[[], Steps[T]], *, reads_only: bool = False) -> T:
        driver = Driver(self._path, self._options, Gate(self._path, self._clock))
        try:
            return driver.run(Act(name, steps, reads_only=reads_only))
        except StoreUnavailable as error:
            if isinstance(error.__cause__, sqlite3.Error) and faults.is_lock(error.__cause__):
                raise MigrationError("migration_lock_timeout", error.message) from error
            raise
        finally:
            driver.close()

    def _status(self) -> Steps[StoreStatus]:
        ((store_id,),) = yield Step("store_id")
        applications = yield from self._applications()
        return StoreStatus(
            store_id=store_id,
            revision=REVISION,
            revision_expected=REVISION,
            applications=[status for _, status in applications],
        )

    def _status_of_another_revision(self) -> StoreStatus:
        """What every revision can be asked: the tables of the applications are another release's."""
        connection = opening.plain_connection(self._path, "rw", self._options.writer_busy_timeout.total_seconds())
        try:
            revision = opening.installed_revision(connection, self._path)
            ((store_id,),) = connection.execute(sql("store_id")).fetchall()
        finally:
            connection.close()
        return StoreStatus(store_id=store_id, revision=revision, revision_expected=REVISION, applications=())

    def _applications(self) -> Steps[list[tuple[int, ApplicationStatus]]]:
        """How the applications stand, by name, each with its number."""
        now_ms = self._clock.now_ms()
        rows = yield Step("applications", (now_ms, now_ms - WORKER_ALIVE_MS))
        return [
            (
                number,
                ApplicationStatus(
                    name=name,
                    admission=Admission(admission),
                    capabilities=msgspec.json.decode(capabilities, type=list[str]),
                    leases=leases,
                    leases_valid=leases_valid,
                    workers=workers,
                ),
            )
            for number, name, admission, capabilities, leases, leases_valid, workers in rows
        ]

    def _set_admission(self, mode: Admission, application: str | None) -> Steps[list[ApplicationStatus]]:
        numbers, statuses = yield from self._asked_for(application)
        check_admission(statuses, mode)
        yield Step("application_admit", [(number, mode.value) for number in numbers], many=True)
        return [msgspec.structs.replace(status, admission=mode) for status in statuses]

    def _activate(self, capability: Capability, application: str, actor: str) -> Steps[bool]:
        (number,), (status,) = yield from self._asked_for(application)
        if capability.value in status.capabilities:
            return False
        before, after = json_text(status.capabilities), json_text(sorted([*status.capabilities, capability.value]))
        yield Step("application_enable", (number, after))
        ((position,),) = yield Step("next_position")
        record = (position, number, actor, "activate_capability", before, after, self._clock.now_ms())
        yield Step("audit_add", (*record, *_OF_NO_JOB))
        return True

    def _reidentify(self) -> Steps[bytes]:
        _, statuses = yield from self._asked_for(None)
        check_offline(statuses)
        store_id = self._ids.ordered()
        yield Step("store_reidentify", (store_id,))
        return store_id

    def _asked_for(self, application: str | None) -> Steps[tuple[Sequence[int], Sequence[ApplicationStatus]]]:
        """Numbers and statuses of the application of that name, or of all of them."""
        applications = yield from self._applications()
        statuses = asked_for([status for _, status in applications], application)
        chosen = {status.name for status in statuses}
        return [number for number, status in applications if status.name in chosen], statuses
