"""History: what happened and what operators did, page by page in the order of the commits.

The place in a cursor counts what lies in front of it. Acts come one after the other here, so nothing is ever committed
late.
"""

from typing import TypeVar

import msgspec

from runwick.contracts.history import AuditPage, AuditRecord, EventPage, JobEvent
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.cursors import cursor_at, place_of
from runwick.stores.memory.tables import Tables, act

T = TypeVar("T", JobEvent, AuditRecord)


def events(tables: Tables, application: str, after: str | None, limit: int) -> Act[EventPage]:
    """What was committed behind that cursor, at most `limit` events."""
    return act("events", lambda: EventPage(*_read(tables, tables.events, application, after, limit)), reads_only=True)


def audit(tables: Tables, application: str, after: str | None, limit: int) -> Act[AuditPage]:
    """What operators did, alike."""
    return act("audit", lambda: AuditPage(*_read(tables, tables.audit, application, after, limit)), reads_only=True)


def _read(
    tables: Tables, entries: list[tuple[str, T]], application: str, after: str | None, limit: int
) -> tuple[list[T], str, bool]:
    """A page behind a cursor.

    Raises:
        InvalidArgument: it is no cursor of this store (code ``invalid_argument``).
    """
    start = 0 if after is None else _place(tables.store_id, after)
    if start > len(entries):
        raise refusals.no_cursor(str(after))
    found, end, more = _page(entries, application, start, limit)
    own = [msgspec.structs.replace(entry, cursor=cursor_at(tables.store_id, entry.cursor)) for entry in found]
    return own, cursor_at(tables.store_id, end), more


def _place(store_id: bytes, cursor: str) -> int:
    place = place_of(store_id, cursor)
    if not (place.isascii() and place.isdecimal() and len(place) < 19):
        raise refusals.no_cursor(cursor)
    return int(place)


def _page(entries: list[tuple[str, T]], application: str, start: int, limit: int) -> tuple[list[T], str, bool]:
    """The application's own among the `limit` entries behind `start`, where to go on, and whether there is more."""
    end = min(start + limit, len(entries))
    return [entry for whose, entry in entries[start:end] if whose == application], str(end), end < len(entries)
