"""What every store decides alike about lists: the order of one, the cursors that go through it, and which queues and
tenants are worth looking at.

A cursor names its store, the list and a place there, which each store writes in its own way::

    3f9a01c7.jobs-5be01d22.311
"""

import hashlib
from typing import Final, NamedTuple

import msgspec

from runwick.contracts.listing import AuditFilter, JobFilter, Within
from runwick.contracts.states import JobState
from runwick.stores import refusals
from runwick.stores.cursors import cursor_at, place_of

_BYTES: Final = 4
"""Of a filter's digest. Who changes a cursor reaches nothing that he could not list; this finds mistakes."""
_DIGITS_MAX: Final = 18
"""Of a place; of one that is an id, there may be more."""
_ENDS: Final = frozenset({JobState.FAILED, JobState.CANCELLED})


class Walk:
    """One list in one store: all pages of it have the same filter."""

    def __init__(self, store_id: bytes, chosen: JobFilter | AuditFilter) -> None:
        content = msgspec.json.encode(chosen, order="deterministic")
        what = "jobs" if isinstance(chosen, JobFilter) else "audit"
        self._store_id: Final = store_id
        self._name: Final = f"{what}-{hashlib.sha256(content).digest()[:_BYTES].hex()}"

    def cursor(self, place: int) -> str:
        """The cursor behind which the next page begins."""
        return cursor_at(self._store_id, f"{self._name}.{place}")

    def place(self, cursor: str, digits_max: int = _DIGITS_MAX) -> int:
        """The place of a cursor.

        Raises:
            InvalidArgument: it is no cursor of this list (code ``invalid_argument``).
        """
        name, _, place = place_of(self._store_id, cursor).partition(".")
        if name != self._name or not (place.isascii() and place.isdecimal() and len(place) <= digits_max):
            raise refusals.no_cursor(cursor)
        return int(place)


def ended_as(chosen: JobFilter) -> JobState | None:
    """The state by whose ends the jobs are ordered; None: they are ordered by their creation."""
    if chosen.states is None or len(chosen.states) != 1 or not chosen.states <= _ENDS:
        return None
    return next(iter(chosen.states))


def covers(within: Within, queue: str, tenant: str | None) -> bool:
    """Whether such a job may be seen at all."""
    return within is None or any(reach.covers(queue, tenant) for reach in within)


class Narrowed(NamedTuple):
    """Where all that a list can show is found, so that no walk looks elsewhere. None is everywhere."""

    queues: frozenset[str] | None
    tenants: frozenset[str] | None

    @property
    def nowhere(self) -> bool:
        """Whether there is nothing to show."""
        return self.queues == frozenset() or self.tenants == frozenset()


def narrowed(queue: str | None, tenant: str | None, within: Within) -> Narrowed:
    """Where jobs of that queue and that tenant are (None does not matter), as far as they may be seen."""
    queues: frozenset[str] | None = None
    tenants: frozenset[str | None] | None = None
    if within is not None:
        if all(reach.queues is not None for reach in within):
            queues = frozenset(name for reach in within for name in reach.queues or ())
        if all(reach.tenants is not None for reach in within):
            tenants = frozenset(name for reach in within for name in reach.tenants or ())
    if queue is not None:
        queues = frozenset({queue}) if queues is None else queues & {queue}
    if tenant is not None:
        tenants = frozenset({tenant}) if tenants is None else tenants & {tenant}
    # Jobs without a tenant are found everywhere.
    named = None if tenants is None or None in tenants else frozenset(name for name in tenants if name is not None)
    return Narrowed(queues, named)
