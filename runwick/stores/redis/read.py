"""Reads: one job as it stands, what is left for a worker, and the runs that cost most."""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.stores import Act, AttemptRecord, CostlyRun, JobRecord, Outlook
from runwick.contracts.usage import Usage
from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.details import NOTHING, Detail

_COSTS: Final = {"cpu_us": "cpu", "rss_peak_bytes": "rss"}
_OUTCOMES: Final = tuple(OutcomeKind)


class _Attempt(msgspec.Struct, frozen=True, array_like=True, gc=False):
    attempt_id: bytes
    generation: int
    number: int
    outcome: int
    code: int | None
    begun_at_ms: int | None
    ended_at_ms: int
    delay_ms: int | None
    worker: bytes | None
    detail: Detail | None

    def record(self, legend: packed.Legend) -> AttemptRecord:
        detail = self.detail or NOTHING
        return AttemptRecord(
            attempt_id=self.attempt_id,
            generation=self.generation,
            number=self.number,
            outcome=_OUTCOMES[self.outcome],
            code=legend.code(self.code),
            begun_at_ms=self.begun_at_ms,
            ended_at_ms=self.ended_at_ms,
            usage=detail.usage,
            worker=self.worker,
            delay_ms=self.delay_ms,
            death=detail.death,
            error=detail.error,
            black_box=detail.black_box,
        )


class _Job(msgspec.Struct, frozen=True, array_like=True):
    kind: int
    lane: int
    state: int
    code: int | None
    generation: int
    revision: int
    executions: int
    max_executions: int
    created_at_ms: int
    due_at_ms: int | None
    ended_at_ms: int | None
    tenant: int | None
    payload_bytes: int
    expires_at_ms: int | None
    cancel_requested_at_ms: int | None
    crashes: int
    worker: bytes | None
    attempt_id: bytes | None
    begun_at_ms: int | None
    result: bytes | None
    attempts: list[_Attempt]
    legend: packed.LegendRows


class _Left(msgspec.Struct, frozen=True, array_like=True):
    due: int
    later: int
    leased: int
    undecodable: int
    postponed: int
    oldest_due_ms: int | None
    blocked: int
    paused: int


class _Run(msgspec.Struct, frozen=True, array_like=True):
    attempt_id: bytes
    job_id: bytes
    kind: bytes
    number: int
    outcome: int
    usage: Usage


_job_read: Final = msgspec.msgpack.Decoder(_Job | None).decode
_left: Final = msgspec.msgpack.Decoder(_Left).decode
_runs: Final = msgspec.msgpack.Decoder(list[_Run]).decode


def job(application: str, job_id: bytes) -> Act[JobRecord | None]:
    """A job as it stands, with its closed attempts; None when this application has none of that id."""
    return Act("job", lambda: _job(application, job_id), reads_only=True)


def _job(application: str, job_id: bytes) -> Calls[JobRecord | None]:
    found = _job_read((yield Call("job", application, packed.arguments(packed.binary(job_id)))))
    if found is None:
        return None
    legend = packed.Legend(found.legend)
    return JobRecord(
        job_id=job_id,
        kind=legend.kind(found.kind),
        lane=legend.lane(found.lane),
        state=packed.STATES[found.state],
        code=legend.code(found.code),
        generation=found.generation,
        revision=found.revision,
        executions=found.executions,
        max_executions=found.max_executions,
        created_at_ms=found.created_at_ms,
        due_at_ms=found.due_at_ms,
        ended_at_ms=found.ended_at_ms,
        tenant=legend.tenant(found.tenant),
        payload_bytes=found.payload_bytes,
        result=found.result,
        attempts=[attempt.record(legend) for attempt in found.attempts],
        expires_at_ms=found.expires_at_ms,
        cancel_requested_at_ms=found.cancel_requested_at_ms,
        crashes=found.crashes,
        worker=found.worker,
        attempt_id=found.attempt_id,
        begun_at_ms=found.begun_at_ms,
    )


def outlook(application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> Act[Outlook]:
    """What is left for a worker of these lanes and kinds."""
    return Act("outlook", lambda: _outlook(application, lanes, kinds), reads_only=True)


def _outlook(application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> Calls[Outlook]:
    asked = packed.arguments(
        [packed.lane_text(application, lane) for lane in lanes], [packed.kind_text(application, kind) for kind in kinds]
    )
    left = _left((yield Call("outlook", application, asked)))
    return Outlook(**msgspec.structs.asdict(left))


def costliest(application: str, by: str, limit: int) -> Act[list[CostlyRun]]:
    """The attempts with the highest ``cpu_us`` or ``rss_peak_bytes``, costliest first; unmeasured ones are left out."""
    cost = _COSTS.get(by)
    if cost is None:
        raise InvalidArgument("invalid_argument", f"runs are ranked by {' or '.join(_COSTS)}, this is {by!r}")
    return Act("costliest", lambda: _costliest(application, cost, limit), reads_only=True)


def _costliest(application: str, cost: str, limit: int) -> Calls[list[CostlyRun]]:
    runs = _runs((yield Call("costliest", application, packed.arguments(cost, limit))))
    return [
        CostlyRun(
            job_id=run.job_id,
            kind=packed.kind_of(run.kind),
            number=run.number,
            outcome=_OUTCOMES[run.outcome],
            usage=run.usage,
        )
        for run in runs
    ]
