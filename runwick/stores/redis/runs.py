"""Runs: the attempts that ended last with what they cost, and how far behind each queue is."""

from typing import Final

import msgspec

from runwick.contracts.listing import COUNTED_MAX, RUNS_MAX, Backlog, JobFilter, RunRecord, Within
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.stores import Act
from runwick.stores.listing import narrowed
from runwick.stores.redis import packed, sight
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.details import detail_of
from runwick.stores.redis.places import Place

_AT_ONCE: Final = 200
"""Runs that one call reads at most, for nobody else is served meanwhile; so for the jobs of the next."""
_CALLS_MAX: Final = 20
_JOBS: Final = 100
_OUTCOMES: Final = tuple(OutcomeKind)


class _Run(msgspec.Struct, frozen=True, array_like=True):
    job_id: bytes
    generation: int
    number: int
    kind: int
    lane: int
    tenant: int | None
    outcome: int
    code: int | None
    begun_at_ms: int | None
    ended_at_ms: int
    payload_bytes: int
    detail: bytes | None

    def record(self, legend: packed.Legend) -> RunRecord:
        detail = detail_of(self.detail)
        return RunRecord(
            job_id=self.job_id,
            generation=self.generation,
            number=self.number,
            kind=legend.kind(self.kind),
            queue=legend.lane(self.lane).queue,
            tenant=legend.tenant(self.tenant),
            outcome=_OUTCOMES[self.outcome].value,
            code=legend.code(self.code),
            begun_at_ms=self.begun_at_ms,
            ended_at_ms=self.ended_at_ms,
            payload_bytes=self.payload_bytes,
            usage=detail.usage,
            death=None if detail.death is None else detail.death.cause,
        )


class _Lane(msgspec.Struct, frozen=True, array_like=True):
    lane: int
    due: int
    later: int
    blocked: int
    leased: int
    oldest_due_at_ms: int | None


_last: Final = msgspec.msgpack.Decoder(tuple[list[_Run], Place | None, packed.LegendRows]).decode
_of_jobs: Final = msgspec.msgpack.Decoder(tuple[list[_Run], packed.LegendRows]).decode
_lanes: Final = msgspec.msgpack.Decoder(tuple[list[_Lane], packed.LegendRows]).decode


def runs(application: str, name: str | None, within: Within, limit: int) -> Act[list[RunRecord]]:
    """The attempts that ended last, the latest first."""
    return Act("runs", lambda: _runs(application, name, within, min(limit, RUNS_MAX)), reads_only=True)


def _runs(application: str, name: str | None, within: Within, limit: int) -> Calls[list[RunRecord]]:
    """Those of one type are looked for twice: among what ended last, where a long backlog of its own hides nothing, and
    among its last jobs, where the runs of busier types do not."""
    if narrowed(None, None, within).nowhere:
        return []
    asked = sight.asked(JobFilter(name=name), within)
    found: list[RunRecord] = []
    place: Place | None = None
    for _ in range(_CALLS_MAX):
        wanted = min(limit - len(found), _AT_ONCE)
        rows, place, legend_rows = _last((yield Call("runs", application, packed.arguments(place, wanted, asked))))
        legend = packed.Legend(legend_rows)
        found += [row.record(legend) for row in rows]
        if place is None or len(found) >= limit:
            return found
    if name is not None:
        rows, legend_rows = _of_jobs((yield Call("runs_of_jobs", application, packed.arguments(_JOBS, asked))))
        found += _others(found, [row.record(packed.Legend(legend_rows)) for row in rows])
    return found[:limit]


def _others(found: list[RunRecord], more: list[RunRecord]) -> list[RunRecord]:
    """Those of `more` that were not found, the latest first. All of them ended before those that were."""
    known = {(run.job_id, run.generation, run.number) for run in found}
    others = [run for run in more if (run.job_id, run.generation, run.number) not in known]
    return sorted(others, key=lambda run: (run.ended_at_ms, run.generation, run.number), reverse=True)


def backlogs(application: str) -> Act[list[Backlog]]:
    """Every queue with live jobs, by name."""
    return Act("backlogs", lambda: _backlogs(application), reads_only=True)


def _backlogs(application: str) -> Calls[list[Backlog]]:
    rows, legend_rows = _lanes((yield Call("backlogs", application, packed.arguments())))
    legend = packed.Legend(legend_rows)
    queues: dict[str, list[_Lane]] = {}
    for row in rows:
        if row.due or row.later or row.blocked or row.leased:
            queues.setdefault(legend.lane(row.lane).queue, []).append(row)
    return [_backlog(queue, lanes) for queue, lanes in sorted(queues.items())]


def _backlog(queue: str, lanes: list[_Lane]) -> Backlog:
    oldest = [lane.oldest_due_at_ms for lane in lanes if lane.oldest_due_at_ms is not None]
    return Backlog(
        queue=queue,
        due=min(sum(lane.due for lane in lanes), COUNTED_MAX),
        later=min(sum(lane.later for lane in lanes), COUNTED_MAX),
        blocked=min(sum(lane.blocked for lane in lanes), COUNTED_MAX),
        leased=min(sum(lane.leased for lane in lanes), COUNTED_MAX),
        oldest_due_at_ms=min(oldest, default=None),
    )
