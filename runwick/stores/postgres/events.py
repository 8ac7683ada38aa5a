"""Events: what happened to jobs and what operators did, page by page in the order of the commits.

A transaction takes its number, the xid, before it writes its first event, and commits later. What is below the oldest
number that is still open can only have been committed already, so reading ends there, and nothing is ever committed in
front of what was read::

    committed 7 · committed 8 · open 9 · committed 10        place 8.311: the last event of transaction 8
    ◀────── told ──────────▶   ◀─ not before 9 has ended

A page looks at as many rows as it was asked for, whatever application they belong to.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.history import AuditPage, AuditRecord, EventKind, EventPage, JobEvent
from runwick.contracts.states import Priority
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.cursors import cursor_at, place_of
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.steps import Step, Steps

_PLACE: Final = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")


class _Place(NamedTuple):
    """Behind which event to look."""

    xid: int
    position: int

    def __str__(self) -> str:
        return f"{self.xid}.{self.position}"


_START: Final = _Place(0, 0)


def events(bound: Bound, application: str, after: str | None, limit: int) -> Act[EventPage]:
    """What was committed behind that cursor, of at most `limit` rows."""
    return Act("events", lambda: _events(bound, application, after, limit), reads_only=True)


def _events(bound: Bound, application: str, after: str | None, limit: int) -> Steps[EventPage]:
    rows, cursor = yield from _page(bound, "events", application, after, limit)
    found = [_event(*row) for row in rows if row[2] is not None]
    return EventPage(found, cursor, len(rows) == limit)


def _event(
    cursor: str,
    what: str,
    job_id: bytes,
    name: str,
    version: int,
    queue: str,
    priority: str,
    generation: int,
    at_ms: int,
    number: int | None,
    state: str | None,
    code: str | None,
    attempt_id: bytes | None,
    command_id: bytes | None,
) -> JobEvent:
    return JobEvent(
        cursor=cursor,
        what=EventKind(what),
        job_id=job_id,
        kind=Kind(name, version),
        lane=Lane(queue, Priority(priority)),
        generation=generation,
        at_ms=at_ms,
        number=number,
        state=state,
        code=code,
        attempt_id=attempt_id,
        command_id=command_id,
    )


def audit(bound: Bound, application: str, after: str | None, limit: int) -> Act[AuditPage]:
    """What operators did, alike."""
    return Act("audit", lambda: _audit(bound, application, after, limit), reads_only=True)


def _audit(bound: Bound, application: str, after: str | None, limit: int) -> Steps[AuditPage]:
    rows, cursor = yield from _page(bound, "audit", application, after, limit)
    found = [_record(*row) for row in rows if row[2] is not None]
    return AuditPage(found, cursor, len(rows) == limit)


def _record(cursor: str, *columns: Any) -> AuditRecord:
    names = AuditRecord.__struct_fields__[1:]
    return AuditRecord(cursor=cursor, **dict(zip(names, columns, strict=True)))


def _page(
    bound: Bound, statement: str, application: str, after: str | None, limit: int
) -> Steps[tuple[list[tuple[Any, ...]], str]]:
    """The next rows, whatever application they belong to, with a cursor for xid and position; and the cursor behind
    them.

    Raises:
        InvalidArgument: it is no cursor of this store, or nothing was ever read up to there.
    """
    store_id = bound.store_id
    place = _START if after is None else _place(store_id, after)
    numbers = packed.number(place.xid), packed.number(place.position), packed.number(limit)
    rows: Sequence[tuple[Any, ...]] = yield Step(statement, (*bound.reading(), application, *numbers))
    if not rows[0][0]:
        raise refusals.no_cursor(str(after))
    told = [(cursor_at(store_id, _Place(*row[1:3])), *row[3:]) for row in rows if row[1] is not None]
    return told, told[-1][0] if told else cursor_at(store_id, place)


def _place(store_id: bytes, cursor: str) -> _Place:
    """Behind which event a cursor goes on.

    Raises:
        InvalidArgument: it is no cursor of this store (code ``invalid_argument``).
    """
    found = _PLACE.fullmatch(place_of(store_id, cursor))
    if found is None:
        raise refusals.no_cursor(cursor)
    return _Place(int(found[1]), int(found[2]))
