"""Events: what happened to jobs and what operators did, page by page in the order of the commits.

A transaction takes its number, the xid, before it writes its first event, and commits later. What is below the oldest
number that is still open can only have been committed already, so reading ends there, and nothing is ever committed in
front of what was read::

    committed 7 · committed 8 · open 9 · committed 10        cursor 8.311: the last event of transaction 8
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
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.steps import Step, Steps

_CURSOR: Final = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")


class _Place(NamedTuple):
    """Behind which event to look."""

    xid: int
    position: int

    def __str__(self) -> str:
        return f"{self.xid}.{self.position}"


_START: Final = _Place(0, 0)


def events(bound: Bound, application: str, after: str | None, limit: int) -> Act[EventPage]:
    """What was committed behind that cursor, of at most `limit` rows."""
    place = _place(after)
    return Act("events", lambda: _events(bound, application, place, limit), reads_only=True)


def _events(bound: Bound, application: str, after: _Place, limit: int) -> Steps[EventPage]:
    rows = yield from _page(bound, "events", application, after, limit)
    found = [_event(_Place(*row[:2]), *row[2:]) for row in rows if row[3] is not None]
    return EventPage(found, _cursor(rows, after), len(rows) == limit)


def _event(
    place: _Place,
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
        cursor=str(place),
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
    place = _place(after)
    return Act("audit", lambda: _audit(bound, application, place, limit), reads_only=True)


def _audit(bound: Bound, application: str, after: _Place, limit: int) -> Steps[AuditPage]:
    rows = yield from _page(bound, "audit", application, after, limit)
    found = [_record(_Place(*row[:2]), *row[2:]) for row in rows if row[3] is not None]
    return AuditPage(found, _cursor(rows, after), len(rows) == limit)


def _record(place: _Place, *columns: Any) -> AuditRecord:
    names = AuditRecord.__struct_fields__[1:]
    return AuditRecord(cursor=str(place), **dict(zip(names, columns, strict=True)))


def _page(
    bound: Bound, statement: str, application: str, after: _Place, limit: int
) -> Steps[Sequence[tuple[Any, ...]]]:
    """The next rows, whatever application they belong to.

    Raises:
        InvalidArgument: nothing was ever read up to there: the cursor is another store's.
    """
    numbers = packed.number(after.xid), packed.number(after.position), packed.number(limit)
    rows = yield Step(statement, (*bound.reading(), application, *numbers))
    if not rows[0][0]:
        raise refusals.no_cursor(str(after))
    return [row[1:] for row in rows if row[1] is not None]


def _place(cursor: str | None) -> _Place:
    if cursor is None:
        return _START
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise refusals.no_cursor(cursor)
    return _Place(int(found[1]), int(found[2]))


def _cursor(rows: Sequence[tuple[Any, ...]], after: _Place) -> str:
    return str(_Place(*rows[-1][:2]) if rows else after)
