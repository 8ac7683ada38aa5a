"""History: what happened to jobs, what operators did, who works here, and the stacks that were asked for.

What was committed is read behind a position. There is one writer, so the positions are the order of the commits, and
nothing is ever committed in front of what was read. A page reads at most as many rows as it was asked for, whatever
application they belong to.
"""

from collections.abc import Sequence
from typing import Any, Final

from runwick.contracts.activity import StackAnswer, WorkerRecord
from runwick.contracts.ambient import Clock
from runwick.contracts.history import AuditPage, AuditRecord, EventKind, EventPage, JobEvent
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.activities import worker_record
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.lease import PRESENCE_KEPT_MS
from runwick.stores.steps import Step, Steps

_DIGITS_MAX: Final = 18
"""Of a cursor: SQLite's integers have a little more."""


def events(interned: Interned, application: str, after: str | None, limit: int) -> Act[EventPage]:
    """What was committed behind that cursor, of at most `limit` rows."""
    position = _position(after)
    return Act("events", lambda: _events(interned, application, position, limit), reads_only=True)


def _events(interned: Interned, application: str, position: int, limit: int) -> Steps[EventPage]:
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    rows = yield from _page("events", position, limit)
    found = [_event(interned, row) for row in rows if number is not None and row[2] == number]
    return EventPage(found, _cursor(rows, position), len(rows) == limit)


def _event(interned: Interned, row: tuple[Any, ...]) -> JobEvent:
    position, what, _, job_id, kind, lane, generation, at_ms, number, state, code, attempt_id, command_id = row
    return JobEvent(
        cursor=str(position),
        what=EventKind(what),
        job_id=job_id,
        kind=interned.kinds.values[kind][1],
        lane=interned.lanes.values[lane][1],
        generation=generation,
        at_ms=at_ms,
        number=number,
        state=state,
        code=code,
        attempt_id=attempt_id,
        command_id=command_id,
    )


def audit(interned: Interned, application: str, after: str | None, limit: int) -> Act[AuditPage]:
    """What operators did, alike."""
    position = _position(after)
    return Act("audit", lambda: _audit(interned, application, position, limit), reads_only=True)


def _audit(interned: Interned, application: str, position: int, limit: int) -> Steps[AuditPage]:
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    rows = yield from _page("audit", position, limit)
    found = [_record(*row) for row in rows if number is not None and row[1] == number]
    return AuditPage(found, _cursor(rows, position), len(rows) == limit)


def _record(position: int, application: int, *columns: Any) -> AuditRecord:
    names = AuditRecord.__struct_fields__[1:]
    return AuditRecord(cursor=str(position), **dict(zip(names, columns, strict=True)))


def _page(statement: str, position: int, limit: int) -> Steps[list[tuple[Any, ...]]]:
    """The next rows, whatever application they belong to.

    Raises:
        InvalidArgument: nothing was ever written up to there: the cursor is another store's, or this one went back.
    """
    rows: list[tuple[Any, ...]] = yield Step(statement, (position, limit))
    if not rows:
        ((next_position,),) = yield Step("next_position")
        if position >= next_position:
            raise refusals.no_cursor(str(position))
    return rows


def _position(cursor: str | None) -> int:
    """The position behind which a cursor goes on.

    Raises:
        InvalidArgument: it is no cursor (code ``invalid_argument``).
    """
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= _DIGITS_MAX):
        raise refusals.no_cursor(cursor)
    return int(cursor)


def _cursor(rows: Sequence[tuple[Any, ...]], position: int) -> str:
    return str(rows[-1][0] if rows else position)


def workers(application: str, clock: Clock) -> Act[list[WorkerRecord]]:
    """The workers seen within 24 hours, the latest start first."""
    return Act("workers", lambda: _workers(application, clock), reads_only=True)


def _workers(application: str, clock: Clock) -> Steps[list[WorkerRecord]]:
    rows: list[tuple[Any, ...]] = yield Step("workers", (application, clock.now_ms() - PRESENCE_KEPT_MS))
    return [worker_record(application, *row) for row in rows]


def stack(application: str, attempt_id: bytes) -> Act[StackAnswer | None]:
    """The stack that was asked for, once its worker has answered."""
    return Act("stack", lambda: _stack(application, attempt_id), reads_only=True)


def _stack(application: str, attempt_id: bytes) -> Steps[StackAnswer | None]:
    rows = yield Step("stack", (application, attempt_id))
    return StackAnswer(attempt_id, rows[0][0]) if rows else None
