"""What an operator does to a memory store: the model of what stores that last do."""

from collections.abc import Sequence

import msgspec

from runwick.contracts.administration import (
    WORKER_ALIVE_MS,
    Admission,
    ApplicationStatus,
    Capability,
    StoreStatus,
)
from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.history import AuditRecord
from runwick.stores.administration import asked_for, check_admission, check_offline
from runwick.stores.memory.tables import Tables


class MemoryAdministration:
    """The tables of a memory store, as its operator handles them.

    Args:
        tables: of the store.
        clock: the store's.
        ids: identities for a store that gets another one.
    """

    def __init__(self, tables: Tables, clock: Clock, ids: Ids) -> None:
        self._tables = tables
        self._clock = clock
        self._ids = ids

    @property
    def description(self) -> str:
        return "memory"

    def status(self) -> StoreStatus:
        with self._tables.lock:
            return StoreStatus(
                store_id=self._tables.store_id, revision=1, revision_expected=1, applications=self._applications()
            )

    def set_admission(self, mode: Admission, application: str | None) -> list[ApplicationStatus]:
        with self._tables.lock:
            statuses = asked_for(self._applications(), application)
            check_admission(statuses, mode)
            for status in statuses:
                self._tables.applications[status.name].admission = mode
            return [msgspec.structs.replace(status, admission=mode) for status in statuses]

    def activate(self, capability: Capability, application: str, actor: str) -> bool:
        with self._tables.lock:
            (status,) = asked_for(self._applications(), application)
            if capability.value in status.capabilities:
                return False
            names = sorted([*status.capabilities, capability.value])
            self._tables.applications[application].capabilities.add(capability.value)
            self._audit(application, actor, "activate_capability", status.capabilities, names)
            return True

    def reidentify(self) -> bytes:
        with self._tables.lock:
            check_offline(self._applications())
            self._tables.store_id = self._ids.ordered()
            return self._tables.store_id

    def close(self) -> None:
        """Nothing is open."""

    def _audit(self, application: str, actor: str, action: str, before: Sequence[str], after: Sequence[str]) -> None:
        record = AuditRecord(
            cursor=str(len(self._tables.audit) + 1),
            at_ms=self._clock.now_ms(),
            actor=actor,
            actor_display=None,
            actor_scheme=None,
            action=action,
            job_id=None,
            generation=None,
            before=msgspec.json.encode(before).decode(),
            after=msgspec.json.encode(after).decode(),
            reason=None,
            command_id=None,
        )
        self._tables.audit.append((application, record))

    def _applications(self) -> Sequence[ApplicationStatus]:
        return [self._status(name) for name in sorted(self._tables.applications)]

    def _status(self, name: str) -> ApplicationStatus:
        now_ms = self._clock.now_ms()
        stands = self._tables.applications[name]
        ends = [row.lease.until_ms for row in self._tables.leased(name) if row.lease is not None]
        return ApplicationStatus(
            name=name,
            admission=stands.admission,
            capabilities=sorted(stands.capabilities),
            leases=len(ends),
            leases_valid=sum(until_ms > now_ms for until_ms in ends),
            workers=sum(
                worker.presence.application == name
                and worker.departed_at_ms is None
                and worker.seen_at_ms > now_ms - WORKER_ALIVE_MS
                for worker in self._tables.workers.values()
            ),
        )
