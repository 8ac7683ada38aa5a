"""Why: every reason for which a job waits, all of one moment."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from runwick.contracts.administration import WORKER_ALIVE_MS
from runwick.contracts.identity import id_bytes
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.contracts.waiting import AHEAD_MAX, WaitCode, WaitReason, WaitReport
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.limits import rate_record, scope_record
from runwick.stores.steps import Step, Steps

_SCOPES: Final = msgspec.json.Decoder(list[tuple[list[Any], bool, int]])
_RATES: Final = msgspec.json.Decoder(list[tuple[list[Any], bool, int, bool]])


class _Stands(NamedTuple):
    """A row of ``why.sql``."""

    state: str
    waits: bool
    now_ms: int
    due_at_ms: int | None
    not_due: bool
    expired: bool
    closed: bool
    paused: bool
    workers: int
    decodes: bool
    untold: bool
    ahead: int
    scopes: str
    rates: str


def why(bound: Bound, application: str, job_id: bytes) -> Act[WaitReport | None]:
    """Why a job waits; None when this application has none of that id."""
    return Act("why", lambda: _why(bound, application, job_id), reads_only=True)


def _why(bound: Bound, application: str, job_id: bytes) -> Steps[WaitReport | None]:
    bounds = packed.number(WORKER_ALIVE_MS), packed.number(AHEAD_MAX)
    rows = yield Step("why", (*bound.reading(), application, packed.Id(job_id), *bounds))
    if not rows:
        return None
    stands = _Stands(*rows[0])
    reasons = [*_of_the_job(stands), *_of_scopes(stands), *_of_windows(stands)] if stands.waits else []
    if stands.waits and not reasons:
        reasons = [WaitReason(code=WaitCode.NEXT, ahead=stands.ahead)]
    return WaitReport(job_id=job_id, state=JobState(stands.state), at_ms=stands.now_ms, reasons=reasons)


def _of_the_job(stands: _Stands) -> Iterator[WaitReason]:
    if stands.not_due:
        yield WaitReason(code=WaitCode.NOT_DUE, until_ms=stands.due_at_ms)
    if stands.expired:
        yield WaitReason(code=WaitCode.EXPIRED)
    if stands.closed:
        yield WaitReason(code=WaitCode.ADMISSION_CLOSED)
    if stands.paused:
        yield WaitReason(code=WaitCode.QUEUE_PAUSED)
    if not stands.workers:
        yield WaitReason(code=WaitCode.NO_POOL)
    elif not stands.decodes:
        yield WaitReason(code=WaitCode.NO_DECODER, untold=stands.untold)


def _of_scopes(stands: _Stands) -> Iterator[WaitReason]:
    """The one in whose line it stands, and others that are full now."""
    for row, in_line, ahead in _SCOPES.decode(stands.scopes):
        record = scope_record([id_bytes(row[0]), *row[1:]])
        if in_line or record.in_use >= record.capacity:
            yield WaitReason(code=WaitCode.SCOPE_FULL, limit=record, ahead=ahead if in_line else None)


def _of_windows(stands: _Stands) -> Iterator[WaitReason]:
    """Alike; or the one that promised it a place, until that is due."""
    for row, in_line, ahead, promised in _RATES.decode(stands.rates):
        record = rate_record([id_bytes(row[0]), *row[1:]])
        if in_line or promised or record.in_window >= record.max_executions:
            yield WaitReason(
                code=WaitCode.RATE_FULL,
                until_ms=stands.due_at_ms if promised else None,
                limit=record,
                ahead=ahead if in_line else None,
            )
