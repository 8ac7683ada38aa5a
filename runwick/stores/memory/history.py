"""History: what happened and what operators did, page by page in the order of the commits.

A cursor counts what lies in front of it. Acts come one after the other here, so nothing is ever committed late.
"""

from typing import TypeVar

from runwick.contracts.history import AuditPage, EventPage
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.memory.tables import Tables, act

T = TypeVar("T")


def events(tables: Tables, application: str, after: str | None, limit: int) -> Act[EventPage]:
    """What was committed behind that cursor, at most `limit` events."""
    start = _place(after)
    return act("events", lambda: EventPage(*_page(tables.events, application, start, limit)), reads_only=True)


def audit(tables: Tables, application: str, after: str | None, limit: int) -> Act[AuditPage]:
    """What operators did, alike."""
    start = _place(after)
    return act("audit", lambda: AuditPage(*_page(tables.audit, application, start, limit)), reads_only=True)


def _place(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise refusals.no_cursor(cursor)
    return int(cursor)


def _page(entries: list[tuple[str, T]], application: str, start: int, limit: int) -> tuple[list[T], str, bool]:
    """The application's own among the `limit` entries behind `start`, where to go on, and whether there is more.

    Raises:
        InvalidArgument: so much has not happened yet: the cursor is another store's.
    """
    if start > len(entries):
        raise refusals.no_cursor(str(start))
    end = min(start + limit, len(entries))
    return [entry for whose, entry in entries[start:end] if whose == application], str(end), end < len(entries)
