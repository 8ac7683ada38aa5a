"""What an operator does to a Redis store itself.

Every method opens a connection, calls one function, and closes it again. The function changes all that it was asked for
or nothing, and answers how it found the store; what was wrong is told from that, in the words of all stores.
"""

import contextlib
from collections.abc import Iterator
from typing import Final

import msgspec

from runwick.contracts.administration import (
    LEGAL_ADMISSIONS,
    WORKER_ALIVE_MS,
    Admission,
    ApplicationStatus,
    Capability,
    StoreStatus,
)
from runwick.contracts.ambient import Ids
from runwick.contracts.errors import OutcomeUnknown, StoreUnavailable
from runwick.stores.administration import asked_for, check_admission, check_offline
from runwick.stores.redis import faults
from runwick.stores.redis.address import Address
from runwick.stores.redis.library import Library
from runwick.stores.redis.operating import ANSWER_S, Found, Session, session
from runwick.stores.redis.packed import binary
from runwick.stores.redis.revision import REVISION


class RedisAdministration:
    """The store in one database, as its operator handles it.

    Args:
        address: of the database.
        ids: identities for a store that gets another one.
        library: the functions.
        answer_s: how long to wait for an answer of the server's.
    """

    def __init__(self, address: Address, ids: Ids, library: Library, *, answer_s: float = ANSWER_S) -> None:
        self._address: Final = address
        self._ids = ids
        self._library = library
        self._answer_s = answer_s

    @property
    def description(self) -> str:
        return f"redis {self._address.shown}"

    def status(self) -> StoreStatus:
        shown = self._address.shown
        lost = StoreUnavailable("store_unavailable", f"{shown} broke the connection; try again")
        with session(self._address, self._library, "status", lost, self._answer_s) as connected:
            found = connected.call("status", WORKER_ALIVE_MS)
        if found.store_id is None or found.revision is None:
            raise faults.not_installed(shown)
        return StoreStatus(
            store_id=found.store_id,
            revision=found.revision,
            revision_expected=REVISION,
            applications=found.statuses,
        )

    def set_admission(self, mode: Admission, application: str | None) -> list[ApplicationStatus]:
        sources = [before for before in Admission if before is mode or mode in LEGAL_ADMISSIONS[before]]
        with self._changing("set_admission") as connected:
            found = self._installed(connected.call("admit", WORKER_ALIVE_MS, application, mode, sources))
        statuses = asked_for(found.statuses, application)
        check_admission(statuses, mode)
        return [msgspec.structs.replace(status, admission=mode) for status in statuses]

    def activate(self, capability: Capability, application: str, actor: str) -> bool:
        with self._changing("activate") as connected:
            found = self._installed(connected.call("activate", WORKER_ALIVE_MS, application, capability, actor))
        asked_for(found.statuses, application)
        return found.is_changed

    def reidentify(self) -> bytes:
        store_id = self._ids.ordered()
        with self._changing("reidentify") as connected:
            found = self._installed(connected.call("reidentify", WORKER_ALIVE_MS, binary(store_id)))
        check_offline(found.statuses)
        return store_id

    def close(self) -> None:
        """Nothing stays open."""

    @contextlib.contextmanager
    def _changing(self, doing: str) -> Iterator[Session]:
        shown = self._address.shown
        lost = OutcomeUnknown(
            "outcome_unknown",
            f"{shown} broke the connection during {doing}, which may or may not be done; look at "
            "`runwick store status`",
        )
        with session(self._address, self._library, doing, lost, self._answer_s) as connected:
            yield connected

    def _installed(self, found: Found) -> Found:
        """What was found in a store of this release; of others the functions change nothing.

        Raises:
            StoreError: there is none, or it is of another release.
        """
        if found.store_id is None or found.revision is None:
            raise faults.not_installed(self._address.shown)
        if found.revision != REVISION:
            raise faults.revision_mismatch(found.revision, self._address.shown)
        return found
