"""What an operator does to a store itself: how it admits work, what it is capable of, who it is.

These are not acts of an application: they run with the migration role, one at a time, on a connection of their own.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec


class Admission(enum.StrEnum):
    """What a store lets the processes of one application do."""

    OPEN = "open"
    DRAIN = "drain"
    """No new work: nothing is dispatched, claimed or begun. What runs is renewed and settled."""
    MAINTENANCE = "maintenance"
    """Nothing is written; reads are answered."""


LEGAL_ADMISSIONS: Final[Mapping[Admission, frozenset[Admission]]] = {
    Admission.OPEN: frozenset({Admission.DRAIN}),
    Admission.DRAIN: frozenset({Admission.OPEN, Admission.MAINTENANCE}),
    Admission.MAINTENANCE: frozenset({Admission.OPEN, Admission.DRAIN}),
}
"""Every change of mode: maintenance is reached from drain alone, so that running work had its chance to end."""

_NEW_WORK: Final = frozenset({"register", "dispatch", "claim", "begin", "retry", "rerun"})


def admits(mode: Admission, act: str, *, reads_only: bool = False) -> bool:
    """Whether an application in this mode may run the act of that name."""
    if mode is Admission.OPEN or reads_only:
        return True
    return mode is Admission.DRAIN and act not in _NEW_WORK


class Capability(enum.StrEnum):
    """What an application's stored work may contain. A release that does not know one creates no work there."""

    SCHEDULER = "scheduler"
    RATE_ADMISSION = "rate_admission"


class ApplicationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One application inside a store."""

    name: str
    admission: Admission
    capabilities: Sequence[str]
    """Names of the active ones, sorted; a newer release may have activated some that this one does not know."""
    leases: int
    """Attempts that somebody owns, their lease run out or not."""
    leases_valid: int
    """Those whose lease has not run out."""
    workers: int
    """Workers that were seen within the last seven renewal intervals and have not said good-bye."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a store and one application in it are to each other, as the application's own role may read it."""

    store_id: bytes
    revision: int
    admission: Admission
    capabilities: Sequence[str]
    """As of an `ApplicationStatus`; none of an application that has not used the store yet."""


class StoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What `runwick store status` shows."""

    store_id: bytes
    revision: int
    revision_expected: int
    """The one revision that this release works with."""
    applications: Sequence[ApplicationStatus]
    """By name; empty when the revision is another one."""


class Administration(Protocol):
    """One store, as its operator handles it. Every method opens, does one thing in one transaction, and answers.

    Raises (all methods):
        StoreError: the store refuses; nothing was changed.
    """

    @property
    def description(self) -> str:
        """One phrase for people, without secrets."""
        ...

    def status(self) -> StoreStatus: ...

    def set_admission(self, mode: Admission, application: str | None) -> list[ApplicationStatus]:
        """Put one application, or every one, into a mode; answers all that it was asked for. Every act that was
        admitted before has ended when this returns.

        Raises:
            InvalidArgument: there is no such application (code ``unknown_application``), or the change of mode is
                not legal (code ``invalid_admission``); nothing was changed.
            MigrationError: transactions under way did not end in time (code ``migration_lock_timeout``).
        """
        ...

    def activate(self, capability: Capability, application: str, actor: str) -> bool:
        """Turn a capability on for an application, for good, with an audit row; False when it was on already.

        Raises:
            InvalidArgument: there is no such application (code ``unknown_application``).
        """
        ...

    def reidentify(self) -> bytes:
        """Give the store a new identity and answer it.

        Raises:
            InvalidArgument: an application is not in maintenance, or leases or workers are still alive
                (code ``store_in_use``); nothing was changed.
        """
        ...

    def close(self) -> None: ...


WORKER_ALIVE_MS: Final = 105_000
"""A worker that was seen within this time counts as alive: seven renewal intervals of 15 s."""
