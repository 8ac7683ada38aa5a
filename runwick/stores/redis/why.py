"""Why: every reason for which a job waits, and the queues and limits as people read them."""

from collections.abc import Iterator
from typing import Final

import msgspec

from runwick.contracts.administration import WORKER_ALIVE_MS
from runwick.contracts.limits import LimitKind, QueueRecord, RateRecord, ScopeRecord
from runwick.contracts.states import LEASED_STATES
from runwick.contracts.stores import Act
from runwick.contracts.waiting import AHEAD_MAX, WaitCode, WaitReason, WaitReport
from runwick.stores.activities import kinds_told
from runwick.stores.damage import maybe_read
from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls


class _Scope(msgspec.Struct, frozen=True, array_like=True):
    id: bytes
    kind: LimitKind
    key: str
    capacity: int
    in_use: int
    waiting: bool
    revision: int
    fence: int

    def record(self) -> ScopeRecord:
        return ScopeRecord(**msgspec.structs.asdict(self))


class _Rate(msgspec.Struct, frozen=True, array_like=True):
    id: bytes
    kind: LimitKind
    key: str
    max_executions: int
    window_ms: int
    granted: int
    in_window: int
    waiting: bool

    def record(self) -> RateRecord:
        return RateRecord(**msgspec.structs.asdict(self))


class _Reason(msgspec.Struct, frozen=True, array_like=True):
    code: WaitCode
    until_ms: int | None
    scope: _Scope | None
    rate: _Rate | None
    ahead: int | None

    def reason(self) -> WaitReason:
        limit = self.scope or self.rate
        record = None if limit is None else limit.record()
        return WaitReason(code=self.code, until_ms=self.until_ms, limit=record, ahead=self.ahead)


class _Worker(msgspec.Struct, frozen=True, array_like=True):
    """Whom a worker that lives serves, as JSON."""

    queues: str
    kinds: str | None


class _Waits(msgspec.Struct, frozen=True, array_like=True):
    state: int
    at_ms: int
    own: list[_Reason]
    of_limits: list[_Reason]
    ahead: int
    kind: bytes
    queue: str
    workers: list[_Worker]


class _Queue(msgspec.Struct, frozen=True, array_like=True):
    queue: str
    revision: int
    since_ms: int | None


_waits: Final = msgspec.msgpack.Decoder(_Waits | None).decode
_queues_read: Final = msgspec.msgpack.Decoder(list[_Queue]).decode
_scopes_read: Final = msgspec.msgpack.Decoder(list[_Scope]).decode
_rates_read: Final = msgspec.msgpack.Decoder(list[_Rate]).decode


def why(application: str, job_id: bytes) -> Act[WaitReport | None]:
    """Why a job waits, all of one moment; None when this application has none of that id."""
    return Act("why", lambda: _why(application, job_id), reads_only=True)


def _why(application: str, job_id: bytes) -> Calls[WaitReport | None]:
    asked = packed.arguments(packed.binary(job_id), WORKER_ALIVE_MS, AHEAD_MAX)
    waits = _waits((yield Call("why", application, asked)))
    if waits is None:
        return None
    state = packed.STATES[waits.state]
    is_waiting = not state.terminal and state not in LEASED_STATES
    reasons = _reasons(waits) if is_waiting else []
    return WaitReport(job_id=job_id, state=state, at_ms=waits.at_ms, reasons=reasons)


def _reasons(waits: _Waits) -> list[WaitReason]:
    """In the order of `WaitCode`, limits by id; that it is the next where there is no other."""
    own = [reason.reason() for reason in waits.own]
    reasons = [*own, *_workers_reasons(waits), *(reason.reason() for reason in waits.of_limits)]
    return reasons or [WaitReason(code=WaitCode.NEXT, ahead=waits.ahead)]


def _workers_reasons(waits: _Waits) -> Iterator[WaitReason]:
    serving = [
        kinds_told(worker.kinds)
        for worker in waits.workers
        if waits.queue in (maybe_read(worker.queues, list[str]) or ())
    ]
    if not serving:
        yield WaitReason(code=WaitCode.NO_POOL)
    elif not any(packed.kind_of(waits.kind) in (kinds or ()) for kinds in serving):
        yield WaitReason(code=WaitCode.NO_DECODER, untold=None in serving)


def queues(application: str) -> Act[list[QueueRecord]]:
    """All that somebody has registered or dispatched to, by name."""
    return Act("queues", lambda: _queues(application), reads_only=True)


def _queues(application: str) -> Calls[list[QueueRecord]]:
    rows = _queues_read((yield Call("queues", application, packed.arguments())))
    records = [
        QueueRecord(queue=row.queue, paused=row.since_ms is not None, revision=row.revision, since_ms=row.since_ms)
        for row in rows
    ]
    return sorted(records, key=lambda record: record.queue)


def scopes(application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[ScopeRecord]]:
    """Up to `limit`, by id, from behind that one."""
    return Act("scopes", lambda: _scopes(application, kind, after, limit), reads_only=True)


def _scopes(application: str, kind: LimitKind, after: bytes | None, limit: int) -> Calls[list[ScopeRecord]]:
    asked = packed.arguments(kind.value, packed.optional_binary(after), limit)
    return [row.record() for row in _scopes_read((yield Call("scopes", application, asked)))]


def rates(application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[RateRecord]]:
    """As `scopes`."""
    return Act("rates", lambda: _rates(application, kind, after, limit), reads_only=True)


def _rates(application: str, kind: LimitKind, after: bytes | None, limit: int) -> Calls[list[RateRecord]]:
    asked = packed.arguments(kind.value, packed.optional_binary(after), limit)
    return [row.record() for row in _rates_read((yield Call("rates", application, asked)))]
