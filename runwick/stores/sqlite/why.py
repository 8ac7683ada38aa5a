"""Why: every reason for which a job waits, and the queues and limits as people read them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from runwick.contracts.administration import WORKER_ALIVE_MS, Admission
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Kind
from runwick.contracts.limits import LimitKind, QueueRecord, RateRecord, ScopeRecord
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.contracts.waiting import AHEAD_MAX, WaitCode, WaitReason, WaitReport
from runwick.stores.activities import kinds_told
from runwick.stores.damage import maybe_read
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.limits import ids_of, joined
from runwick.stores.steps import Step, Steps


class _Job(NamedTuple):
    """A row of ``why.sql``."""

    application: int
    admission: str
    paused: int
    lane: int
    queue: str
    name: str
    version: int
    state: str
    due_at_ms: int
    expires_at_ms: int | None
    called: bytes | None
    line: bytes | None
    rank: int | None
    scopes: bytes | None
    rates: bytes | None


def why(interned: Interned, application: str, job_id: bytes, clock: Clock) -> Act[WaitReport | None]:
    """Why a job waits, all of one moment; None when this application has none of that id."""
    return Act("why", lambda: _why(interned, application, job_id, clock.now_ms()), reads_only=True)


def _why(interned: Interned, application: str, job_id: bytes, now_ms: int) -> Steps[WaitReport | None]:
    rows = yield Step("why", (application, job_id))
    if not rows:
        return None
    job = _Job(*rows[0])
    state = JobState(job.state)
    reasons: list[WaitReason] = []
    if state in (JobState.PENDING, JobState.RETRYING):
        reasons = yield from _reasons(interned, job, job_id, now_ms)
    return WaitReport(job_id=job_id, state=state, at_ms=now_ms, reasons=reasons)


def _reasons(interned: Interned, job: _Job, job_id: bytes, now_ms: int) -> Steps[list[WaitReason]]:
    """In the order of `WaitCode`, limits by id; that it is the next where there is no other."""
    intake = yield from interned.refresh()
    of_all = intake.scopes_of(job.application, job.queue, job.name)
    scopes = yield from _scopes_shown(sorted({*ids_of(job.scopes), *of_all}))
    called = (yield from _rates_shown([job.called], now_ms)) if job.called is not None else []
    rates = yield from _rates_shown(sorted(set(ids_of(job.rates))), now_ms)
    workers = yield Step("why_workers", (job.application, now_ms - WORKER_ALIVE_MS))
    in_line = None
    if job.line is not None:
        ((in_line,),) = yield Step("line_ahead", (job.line, job.rank, job_id, AHEAD_MAX))
    reasons = [
        *_own_reasons(job, now_ms, promised=bool(called)),
        *_workers_reasons(job, workers),
        *_full_scopes(job, scopes, in_line),
        *_full_windows(job, rates, in_line, now_ms),
    ]
    if not reasons:
        ((ahead,),) = yield Step("lane_ahead", (job.application, job.lane, job.due_at_ms, job_id, AHEAD_MAX))
        reasons = [WaitReason(code=WaitCode.NEXT, ahead=ahead)]
    return reasons


def _own_reasons(job: _Job, now_ms: int, *, promised: bool) -> Iterator[WaitReason]:
    """
    Args:
        promised: a rate window promised it a place or called it in: what it waits for is that one.
    """
    if job.due_at_ms > now_ms and not promised:
        yield WaitReason(code=WaitCode.NOT_DUE, until_ms=job.due_at_ms)
    if job.expires_at_ms is not None and job.expires_at_ms <= now_ms:
        yield WaitReason(code=WaitCode.EXPIRED)
    if job.admission != Admission.OPEN.value:
        yield WaitReason(code=WaitCode.ADMISSION_CLOSED)
    if job.paused:
        yield WaitReason(code=WaitCode.QUEUE_PAUSED)


def _workers_reasons(job: _Job, workers: Sequence[tuple[str, str | None]]) -> Iterator[WaitReason]:
    serving = [kinds_told(kinds) for queues, kinds in workers if job.queue in (maybe_read(queues, list[str]) or ())]
    if not serving:
        yield WaitReason(code=WaitCode.NO_POOL)
    elif not any(Kind(job.name, job.version) in (kinds or ()) for kinds in serving):
        yield WaitReason(code=WaitCode.NO_DECODER, untold=None in serving)


def _full_scopes(job: _Job, scopes: Sequence[ScopeRecord], ahead: int | None) -> Iterator[WaitReason]:
    """The one in whose line it stands, and others that are full now."""
    for record in scopes:
        in_line = job.line == record.id
        if in_line or record.in_use >= record.capacity:
            yield WaitReason(code=WaitCode.SCOPE_FULL, limit=record, ahead=ahead if in_line else None)


def _full_windows(job: _Job, rates: Sequence[RateRecord], ahead: int | None, now_ms: int) -> Iterator[WaitReason]:
    """Alike; or the one that promised it a place, until that is due."""
    for record in rates:
        in_line = job.line == record.id
        promised = job.called == record.id and job.due_at_ms > now_ms
        if in_line or promised or record.in_window >= record.max_executions:
            yield WaitReason(
                code=WaitCode.RATE_FULL,
                until_ms=job.due_at_ms if promised else None,
                limit=record,
                ahead=ahead if in_line else None,
            )


def queues(application: str) -> Act[list[QueueRecord]]:
    """All that somebody has registered or dispatched to, by name."""
    return Act("queues", lambda: _queues(application), reads_only=True)


def _queues(application: str) -> Steps[list[QueueRecord]]:
    rows = yield Step("queues", (application,))
    return [
        QueueRecord(queue=queue, paused=since_ms is not None, revision=revision or 0, since_ms=since_ms)
        for queue, revision, since_ms in rows
    ]


def scopes(application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[ScopeRecord]]:
    """Up to `limit`, by id, from behind that one."""
    return Act("scopes", lambda: _scopes("scopes", application, kind.value, after or b"", limit), reads_only=True)


def rates(application: str, kind: LimitKind, after: bytes | None, limit: int, clock: Clock) -> Act[list[RateRecord]]:
    """As `scopes`."""

    def steps() -> Steps[list[RateRecord]]:
        return _rates("rates", application, kind.value, after or b"", limit, clock.now_ms())

    return Act("rates", steps, reads_only=True)


def _scopes_shown(ids: Sequence[bytes]) -> Steps[list[ScopeRecord]]:
    return (yield from _scopes("scopes_shown", joined(ids))) if ids else []


def _rates_shown(ids: Sequence[bytes], now_ms: int) -> Steps[list[RateRecord]]:
    return (yield from _rates("rates_shown", joined(ids), now_ms)) if ids else []


def _scopes(statement: str, *parameters: Any) -> Steps[list[ScopeRecord]]:
    rows = yield Step(statement, parameters)
    return [
        ScopeRecord(
            id=scope_id,
            kind=LimitKind(kind),
            key=key,
            capacity=capacity,
            in_use=in_use,
            waiting=bool(waiting),
            revision=revision,
            fence=fence,
        )
        for scope_id, kind, key, capacity, in_use, waiting, revision, fence in rows
    ]


def _rates(statement: str, *parameters: Any) -> Steps[list[RateRecord]]:
    rows = yield Step(statement, parameters)
    return [
        RateRecord(
            id=rate_id,
            kind=LimitKind(kind),
            key=key,
            max_executions=most,
            window_ms=window_ms,
            granted=granted,
            in_window=in_window,
            waiting=bool(waiting),
        )
        for rate_id, kind, key, most, window_ms, granted, in_window, waiting in rows
    ]
