"""History: what happened to jobs, what operators did, who works here, and the stacks that were asked for.

What was committed is read behind a position. There is one writer, so the positions are the order of the commits, and
nothing is ever committed in front of what was read. A page reads at most as many rows as it was asked for, whatever
application they belong to.
"""

from typing import Any, Final

from runwick.contracts.activity import StackAnswer, WorkerRecord
from runwick.contracts.ambient import Clock
from runwick.contracts.history import AuditPage, AuditRecord, EventKind, EventPage, JobEvent
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.activities import worker_record
from runwick.stores.cursors import cursor_at, place_of
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.lease import PRESENCE_KEPT_MS
from runwick.stores.steps import Step, Steps

_DIGITS_MAX: Final = 18
"""Of a cursor: SQLite's integers have a little more."""


def events(gate: Gate, interned: Interned, application: str, after: str | None, limit: int) -> Act[EventPage]:
    """What was committed behind that cursor, of at most `limit` rows."""
    return Act("events", lambda: _events(gate, interned, application, after, limit), reads_only=True)


def _events(gate: Gate, interned: Interned, application: str, after: str | None, limit: int) -> Steps[EventPage]:
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    rows, cursor = yield from _page(gate, "events", after, limit)
    found = [_event(interned, row) for row in rows if number is not None and row[2] == number]
    return EventPage(found, cursor, len(rows) == limit)


def _event(interned: Interned, row: tuple[Any, ...]) -> JobEvent:
    cursor, what, _, job_id, kind, lane, generation, at_ms, number, state, code, attempt_id, command_id = row
    return JobEvent(
        cursor=cursor,
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


def audit(gate: Gate, interned: Interned, application: str, after: str | None, limit: int) -> Act[AuditPage]:
    """What operators did, alike."""
    return Act("audit", lambda: _audit(gate, interned, application, after, limit), reads_only=True)


def _audit(gate: Gate, interned: Interned, application: str, after: str | None, limit: int) -> Steps[AuditPage]:
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    rows, cursor = yield from _page(gate, "audit", after, limit)
    found = [audit_record(*row) for row in rows if number is not None and row[1] == number]
    return AuditPage(found, cursor, len(rows) == limit)


def audit_record(cursor: str, application: int, *columns: Any) -> AuditRecord:
    """What a row of ``audit.sql`` says, its position made a cursor."""
    names = AuditRecord.__struct_fields__[1:]
    return AuditRecord(cursor=cursor, **dict(zip(names, columns, strict=True)))


def _page(gate: Gate, statement: str, after: str | None, limit: int) -> Steps[tuple[list[tuple[Any, ...]], str]]:
    """The next rows, whatever application they belong to, with a cursor for a position; and the cursor behind them.

    Raises:
        InvalidArgument: it is no cursor of this store, or nothing was ever written up to there: the store went back.
    """
    assert gate.store_id is not None, "a transaction that has begun has met the store"
    position = 0 if after is None else _position(gate.store_id, after)
    rows: list[tuple[Any, ...]] = yield Step(statement, (position, limit))
    if not rows:
        ((next_position,),) = yield Step("next_position")
        if position >= next_position:
            raise refusals.no_cursor(str(after))
    told = [(cursor_at(gate.store_id, row[0]), *row[1:]) for row in rows]
    return told, told[-1][0] if told else cursor_at(gate.store_id, position)


def _position(store_id: bytes, cursor: str) -> int:
    """The position behind which a cursor goes on.

    Raises:
        InvalidArgument: it is no cursor of this store (code ``invalid_argument``).
    """
    place = place_of(store_id, cursor)
    if not (place.isascii() and place.isdecimal() and len(place) <= _DIGITS_MAX):
        raise refusals.no_cursor(cursor)
    return int(place)


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
