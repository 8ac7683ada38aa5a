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
            self._tables.applications[application].capabilities.add(capability.value)
            return capability.value not in status.capabilities

    def reidentify(self) -> bytes:
        with self._tables.lock:
            check_offline(self._applications())
            self._tables.store_id = self._ids.ordered()
            return self._tables.store_id

    def close(self) -> None:
        """Nothing is open."""

    def _applications(self) -> Sequence[ApplicationStatus]:
        return [self._status(name) for name in sorted(self._tables.applications)]

    def _status(self, name: str) -> ApplicationStatus:
        now_ms = self._clock.now_ms()
        stands = self._tables.applications[name]
        ends = [row.lease.until_ms for row in self._tables.leased(name) if row.lease is not None]
        workers = self._tables.workers.values()
        return ApplicationStatus(
            name=name,
            admission=stands.admission,
            capabilities=sorted(stands.capabilities),
            leases=len(ends),
            leases_valid=sum(until_ms > now_ms for until_ms in ends),
            workers=sum(
                presence.application == name and seen_ms > now_ms - WORKER_ALIVE_MS for presence, seen_ms in workers
            ),
        )
