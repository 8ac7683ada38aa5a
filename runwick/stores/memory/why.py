"""Why: every reason for which a job waits, and the queues and limits as people read them."""

from collections.abc import Iterator

from runwick.contracts.administration import WORKER_ALIVE_MS, Admission
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import WorkerPresence
from runwick.contracts.limits import LimitKind, QueueRecord, RateRecord, ScopeRecord
from runwick.contracts.stores import Act
from runwick.contracts.waiting import AHEAD_MAX, WaitCode, WaitReason, WaitReport
from runwick.stores.memory.limits import rate_record, scope_record
from runwick.stores.memory.rows import JobRow
from runwick.stores.memory.tables import Tables, act


def why(tables: Tables, application: str, job_id: bytes, clock: Clock) -> Act[WaitReport | None]:
    """Why a job waits, all of one moment; None when this application has none of that id."""
    return act("why", lambda: _why(tables, application, job_id, clock.now_ms()), reads_only=True)


def _why(tables: Tables, application: str, job_id: bytes, now_ms: int) -> WaitReport | None:
    row = tables.find(application, job_id)
    if row is None:
        return None
    reasons = list(_reasons(tables, row, now_ms)) if row.waits else []
    return WaitReport(job_id=job_id, state=row.state, at_ms=now_ms, reasons=reasons)


def _reasons(tables: Tables, row: JobRow, now_ms: int) -> Iterator[WaitReason]:
    """In the order of `WaitCode`, limits by id; that it is the next where there is no other."""
    reasons = [*_own_reasons(tables, row, now_ms), *_workers_reasons(tables, row, now_ms)]
    reasons += _full_scopes(tables, row)
    reasons += _full_windows(tables, row, now_ms)
    yield from reasons
    if not reasons:
        in_front = (other for other in tables.waiting(row.command.application, row.command.lane))
        ahead = sum(other.entry < row.entry for other in in_front)
        yield WaitReason(code=WaitCode.NEXT, ahead=min(ahead, AHEAD_MAX))


def _own_reasons(tables: Tables, row: JobRow, now_ms: int) -> Iterator[WaitReason]:
    application = row.command.application
    if row.due_at_ms > now_ms and row.called not in tables.limits.windows:
        yield WaitReason(code=WaitCode.NOT_DUE, until_ms=row.due_at_ms)
    if row.has_expired(now_ms):
        yield WaitReason(code=WaitCode.EXPIRED)
    if tables.know(application).admission is not Admission.OPEN:
        yield WaitReason(code=WaitCode.ADMISSION_CLOSED)
    if tables.is_paused(application, row.command.lane.queue):
        yield WaitReason(code=WaitCode.QUEUE_PAUSED)


def _workers_reasons(tables: Tables, row: JobRow, now_ms: int) -> Iterator[WaitReason]:
    serving = [
        presence
        for presence in _alive(tables, row.command.application, now_ms)
        if row.command.lane.queue in presence.queues
    ]
    untold = any(presence.kinds is None for presence in serving)
    if not serving:
        yield WaitReason(code=WaitCode.NO_POOL)
    elif not any(row.command.kind in (presence.kinds or ()) for presence in serving):
        yield WaitReason(code=WaitCode.NO_DECODER, untold=untold)


def _alive(tables: Tables, application: str, now_ms: int) -> Iterator[WorkerPresence]:
    for worker in tables.workers.values():
        is_alive = worker.departed_at_ms is None and worker.seen_at_ms > now_ms - WORKER_ALIVE_MS
        if is_alive and worker.presence.application == application:
            yield worker.presence


def _full_scopes(tables: Tables, row: JobRow) -> Iterator[WaitReason]:
    """The one in whose line it stands, and others that are full now."""
    for limit in tables.limits.scopes_of(row):
        in_line = row.line == limit
        if in_line or not tables.limits.scopes[limit].scope.room:
            record = _scope(tables, limit)
            yield WaitReason(code=WaitCode.SCOPE_FULL, limit=record, ahead=_ahead(tables, row) if in_line else None)


def _full_windows(tables: Tables, row: JobRow, now_ms: int) -> Iterator[WaitReason]:
    """Alike; or the one that promised it a place, until that is due."""
    for limit in row.rates:
        record = _rate(tables, limit, now_ms)
        in_line = row.line == limit
        promised = row.called == limit and row.due_at_ms > now_ms
        if in_line or promised or record.in_window >= record.max_executions:
            yield WaitReason(
                code=WaitCode.RATE_FULL,
                until_ms=row.due_at_ms if promised else None,
                limit=record,
                ahead=_ahead(tables, row) if in_line else None,
            )


def _ahead(tables: Tables, row: JobRow) -> int:
    """Those of its own priority in front of it in its line."""
    rank = row.standing[0]
    assert row.line is not None
    in_front = (other for other in tables.line(row.line) if other.standing[0] == rank)
    return min(sum(other.standing < row.standing for other in in_front), AHEAD_MAX)


def queues(tables: Tables, application: str) -> Act[list[QueueRecord]]:
    """All that somebody has registered or dispatched to, by name."""
    return act("queues", lambda: _queues(tables, application), reads_only=True)


def _queues(tables: Tables, application: str) -> list[QueueRecord]:
    return [
        QueueRecord(queue=name, paused=queue.since_ms is not None, revision=queue.revision, since_ms=queue.since_ms)
        for (whose, name), queue in sorted(tables.queues.items(), key=lambda item: item[0])
        if whose == application
    ]


def scopes(
    tables: Tables, application: str, kind: LimitKind, after: bytes | None, limit: int
) -> Act[list[ScopeRecord]]:
    """Up to `limit`, by id, from behind that one."""
    return act("scopes", lambda: _scopes(tables, application, kind, after, limit), reads_only=True)


def _scopes(tables: Tables, application: str, kind: LimitKind, after: bytes | None, limit: int) -> list[ScopeRecord]:
    found = (
        limit_id
        for limit_id, row in tables.limits.scopes.items()
        if (row.application, row.kind) == (application, kind) and (after is None or limit_id > after)
    )
    return [_scope(tables, limit_id) for limit_id in sorted(found)[:limit]]


def rates(
    tables: Tables, application: str, kind: LimitKind, after: bytes | None, limit: int, clock: Clock
) -> Act[list[RateRecord]]:
    """As `scopes`."""
    return act("rates", lambda: _rates(tables, application, kind, after, limit, clock.now_ms()), reads_only=True)


def _rates(
    tables: Tables, application: str, kind: LimitKind, after: bytes | None, limit: int, now_ms: int
) -> list[RateRecord]:
    found = (
        limit_id
        for limit_id, row in tables.limits.windows.items()
        if (row.application, row.kind) == (application, kind) and (after is None or limit_id > after)
    )
    return [_rate(tables, limit_id, now_ms) for limit_id in sorted(found)[:limit]]


def _scope(tables: Tables, limit: bytes) -> ScopeRecord:
    return scope_record(tables.limits.scopes[limit], waiting=bool(tables.line(limit)))


def _rate(tables: Tables, limit: bytes, now_ms: int) -> RateRecord:
    return rate_record(tables.limits.windows[limit], now_ms, waiting=bool(tables.line(limit)))
