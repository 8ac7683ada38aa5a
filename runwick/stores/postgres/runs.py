"""Runs and backlogs: the attempts that ended last, how far behind each queue is, and which job types there are."""

from collections.abc import Sequence
from typing import Any

from runwick.contracts.listing import COUNTED_MAX, EXAMINED_MAX, RUNS_MAX, Backlog, RunRecord, Within
from runwick.contracts.outcomes import Death
from runwick.contracts.stores import Act
from runwick.contracts.usage import Usage
from runwick.stores.damage import maybe_read
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.names import Wanted
from runwick.stores.postgres.sight import KINDS_WALKED, look
from runwick.stores.steps import Step, Steps


def runs(bound: Bound, application: str, name: str | None, within: Within, limit: int) -> Act[list[RunRecord]]:
    """The attempts that ended last, the latest first; of one job type, those of its latest versions' last jobs."""
    return Act("runs", lambda: _runs(bound, application, name, within, min(limit, RUNS_MAX)), reads_only=True)


def _runs(bound: Bound, application: str, name: str | None, within: Within, limit: int) -> Steps[list[RunRecord]]:
    number = yield from bound.names.find(Wanted(application))
    if number is None:
        return []
    sight, kinds = yield from look(bound, number, None, name, within)
    if sight.nothing:
        return []
    parameters: Sequence[Any] = (
        *bound.reading(),
        packed.number(number),
        *sight.columns(),
        packed.number(limit),
        packed.number(EXAMINED_MAX),
    )
    if name is None:
        step = Step("runs", parameters)
    else:
        step = Step("runs_of", (*parameters, packed.numbers(kinds[:KINDS_WALKED])))
    rows: list[tuple[Any, ...]] = yield step
    yield from bound.names.read((row[4] for row in rows), (row[3] for row in rows))
    return [_run(bound, *row) for row in rows]


def _run(
    bound: Bound,
    job_id: bytes,
    generation: int,
    number: int,
    kind: int,
    lane: int,
    tenant: str | None,
    outcome: str,
    code: str | None,
    begun_at_ms: int | None,
    ended_at_ms: int,
    payload_bytes: int,
    usage: str | None,
    death: str | None,
) -> RunRecord:
    died = maybe_read(death, Death)
    return RunRecord(
        job_id=job_id,
        generation=generation,
        number=number,
        kind=bound.names.kind_of[kind],
        queue=bound.names.lane_of[lane].queue,
        tenant=tenant,
        outcome=outcome,
        code=code,
        begun_at_ms=begun_at_ms,
        ended_at_ms=ended_at_ms,
        payload_bytes=payload_bytes,
        usage=maybe_read(usage, Usage),
        death=None if died is None else died.cause,
    )


def backlogs(bound: Bound, application: str) -> Act[list[Backlog]]:
    """Every queue with live jobs, by name."""
    return Act("backlogs", lambda: _backlogs(bound, application), reads_only=True)


def _backlogs(bound: Bound, application: str) -> Steps[list[Backlog]]:
    rows: list[tuple[Any, ...]] = yield Step("backlogs", (*bound.reading(), application, packed.number(COUNTED_MAX)))
    return [
        Backlog(queue=queue, due=due, later=later, blocked=blocked, leased=leased, oldest_due_at_ms=oldest_due_at_ms)
        for queue, due, later, blocked, leased, oldest_due_at_ms in rows
    ]


def names(bound: Bound, application: str) -> Act[list[str]]:
    """The stored names of all job types that ever had a job, sorted."""
    return Act("names", lambda: _names(bound, application), reads_only=True)


def _names(bound: Bound, application: str) -> Steps[list[str]]:
    rows = yield Step("used_names", (*bound.reading(), application))
    return [name for (name,) in rows]
