"""What an operator does to a PostgreSQL store itself, with the role that migrates it.

Every method opens a connection, does one thing in one transaction, and closes it again. Mode and identity change while
no act runs, so that nothing which was let in before is still under way when the method returns.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from psycopg import errors

from runwick.contracts.administration import WORKER_ALIVE_MS, Admission, ApplicationStatus, Capability, StoreStatus
from runwick.contracts.ambient import Ids
from runwick.contracts.errors import OutcomeUnknown, RunwickError, StoreUnavailable
from runwick.contracts.identity import id_text
from runwick.stores.administration import asked_for, check_admission, check_offline
from runwick.stores.postgres import faults
from runwick.stores.postgres.address import Address
from runwick.stores.postgres.operating import ANSWER_S, LOCK_PATIENCE_S, Session, ask, session, while_no_act_runs
from runwick.stores.postgres.revision import REVISION


class PostgresAdministration:
    """The store in one database, as its operator handles it.

    Args:
        address: of the database.
        ids: identities for a store that gets another one.
        lock_patience_s: how long to try for a moment in which no act runs.
        answer_s: how long to wait for an answer of the server's.
    """

    def __init__(
        self, address: Address, ids: Ids, *, lock_patience_s: float = LOCK_PATIENCE_S, answer_s: float = ANSWER_S
    ) -> None:
        self._address: Final = address
        self._ids = ids
        self._lock_patience_s = lock_patience_s
        self._answer_s = answer_s

    @property
    def description(self) -> str:
        return f"postgres {self._address.shown}"

    def status(self) -> StoreStatus:
        lost = StoreUnavailable("store_unavailable", f"{self._address.shown} broke the connection; try again")
        with session(self._address, lost, self._answer_s) as connection, connection.transaction():
            revision = self._revision(connection)
            ((store_id,),) = ask(connection, "store_id")
            applications = _applications(connection) if revision == REVISION else {}
            return StoreStatus(
                store_id=store_id.bytes,
                revision=revision,
                revision_expected=REVISION,
                applications=list(applications.values()),
            )

    def set_admission(self, mode: Admission, application: str | None) -> list[ApplicationStatus]:
        with self._installed("set_admission") as connection:

            def change() -> list[ApplicationStatus]:
                numbers, statuses = _asked_for(connection, application)
                check_admission(statuses, mode)
                ask(connection, "application_admit", numbers, mode.value)
                return [msgspec.structs.replace(status, admission=mode) for status in statuses]

            return while_no_act_runs(connection, change, self._lock_patience_s)

    def activate(self, capability: Capability, application: str, actor: str) -> bool:
        with self._installed("activate") as connection, connection.transaction():
            (number,), _ = _asked_for(connection, application)
            changed = ask(connection, "application_enable", number, capability.value)
            for before, after in changed:
                texts = (msgspec.json.encode(sorted(names)).decode() for names in (before, after))
                ask(connection, "audit_add", number, actor, "activate_capability", *texts)
            return bool(changed)

    def reidentify(self) -> bytes:
        with self._installed("reidentify") as connection:

            def change() -> bytes:
                _, statuses = _asked_for(connection, None)
                check_offline(statuses)
                store_id = self._ids.ordered()
                ask(connection, "store_reidentify", id_text(store_id))
                return store_id

            return while_no_act_runs(connection, change, self._lock_patience_s)

    def close(self) -> None:
        """Nothing stays open."""

    @contextlib.contextmanager
    def _installed(self, doing: str) -> Iterator[Session]:
        """A session in which to change a store of this release.

        Raises:
            StoreRevisionMismatch: it is of another one.
        """
        lost: RunwickError = OutcomeUnknown(
            "outcome_unknown",
            f"{self._address.shown} broke the connection during {doing}, which may or may not be done; look at "
            "`runwick store status`",
        )
        with session(self._address, lost, self._answer_s) as connection:
            revision = self._revision(connection)
            if revision != REVISION:
                raise faults.revision_mismatch(revision, self._address.shown)
            yield connection

    def _revision(self, connection: Session) -> int:
        """The store's revision.

        Raises:
            StoreNotInstalled: there is no store.
        """
        try:
            ((revision,),) = ask(connection, "revision")
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            revision = None
        if revision is None:
            raise faults.not_installed(self._address.shown, "the database has no Runwick schema")
        return int(revision)


def _applications(connection: Session) -> dict[int, ApplicationStatus]:
    """How the applications stand, by their numbers, in the order of their names."""
    return {
        number: ApplicationStatus(
            name=name,
            admission=Admission(admission),
            capabilities=sorted(capabilities),
            leases=leases,
            leases_valid=valid,
            workers=workers,
        )
        for number, name, admission, capabilities, leases, valid, workers in ask(
            connection, "applications", WORKER_ALIVE_MS
        )
    }


def _asked_for(connection: Session, application: str | None) -> tuple[Sequence[int], Sequence[ApplicationStatus]]:
    """Numbers and statuses of the application of that name, or of all of them."""
    applications = _applications(connection)
    statuses = asked_for(list(applications.values()), application)
    return [number for number, status in applications.items() if status in statuses], statuses
