"""Lists: jobs from the latest on, and which types there are.

A walk goes from the latest to the earliest and ends a page where it is full, or when it has looked at enough. Which
walk a list takes, and how much one page looks at, is told in `lua/walks.lua`.
"""

from typing import Final

import msgspec

from runwick.contracts.listing import JobFilter, JobPage, JobSummary, Within
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores import listing
from runwick.stores.redis import packed, sight
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.met import Met, identity
from runwick.stores.redis.places import Place


class _Job(msgspec.Struct, frozen=True, array_like=True):
    job_id: bytes
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
    begun_at_ms: int | None
    ended_at_ms: int | None
    cancel_requested_at_ms: int | None
    tenant: int | None
    payload_bytes: int

    def summary(self, legend: packed.Legend) -> JobSummary:
        return JobSummary(
            job_id=self.job_id,
            kind=legend.kind(self.kind),
            lane=legend.lane(self.lane),
            state=packed.STATES[self.state],
            code=legend.code(self.code),
            generation=self.generation,
            revision=self.revision,
            executions=self.executions,
            max_executions=self.max_executions,
            created_at_ms=self.created_at_ms,
            due_at_ms=self.due_at_ms,
            begun_at_ms=self.begun_at_ms,
            ended_at_ms=self.ended_at_ms,
            cancel_requested_at_ms=self.cancel_requested_at_ms,
            tenant=legend.tenant(self.tenant),
            payload_bytes=self.payload_bytes,
        )


_page: Final = msgspec.msgpack.Decoder(tuple[list[_Job], Place | None, packed.LegendRows]).decode
_texts: Final = msgspec.msgpack.Decoder(list[bytes]).decode


def jobs(met: Met, application: str, chosen: JobFilter, within: Within, after: str | None, limit: int) -> Act[JobPage]:
    """Up to `limit` jobs behind that cursor, the latest first."""
    return Act("jobs", lambda: _jobs(met, application, chosen, within, after, limit), reads_only=True)


def _jobs(
    met: Met, application: str, chosen: JobFilter, within: Within, after: str | None, limit: int
) -> Calls[JobPage]:
    walk = listing.Walk((yield from identity(met, application)), chosen)
    ended = listing.ended_as(chosen)
    start = None if after is None else _place(walk.place(after), ended)
    if listing.narrowed(chosen.queue, chosen.tenant, within).nowhere:
        return JobPage([], None)
    states = None if chosen.states is None else [packed.STATE_NUMBERS[state] for state in chosen.states]
    by_ends = None if ended is None else packed.STATE_NUMBERS[ended]
    asked = packed.arguments(start, limit, states, by_ends, sight.asked(chosen, within))
    rows, following, legend_rows = _page((yield Call("jobs", application, asked)))
    legend = packed.Legend(legend_rows)
    cursor = None if following is None else walk.cursor(_number(following, ended))
    return JobPage([row.summary(legend) for row in rows], cursor)


def _place(number: int, ended: JobState | None) -> Place:
    """An end is a part of a write; a job's number stands there alone."""
    return Place(number, 0) if ended is None else Place.at(number)


def _number(place: Place, ended: JobState | None) -> int:
    return place.write if ended is None else place.number


def names(application: str) -> Act[list[str]]:
    """The stored names of all job types that ever had a job, sorted."""
    return Act("names", lambda: _names(application), reads_only=True)


def _names(application: str) -> Calls[list[str]]:
    texts = _texts((yield Call("names", application, packed.arguments())))
    return sorted({packed.kind_of(text).name for text in texts})
