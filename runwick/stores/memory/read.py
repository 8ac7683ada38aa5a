"""Reads: one job as it stands, what is left for a worker, and the runs that cost most."""

from collections.abc import Callable, Sequence
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.states import LEASED_STATES, JobState
from runwick.contracts.stores import Act, CostlyRun, JobRecord, Outlook
from runwick.contracts.usage import Usage
from runwick.stores.memory.tables import JobRow, Tables, act

_COSTS: Final[dict[str, Callable[[Usage], int | None]]] = {
    "cpu_us": lambda usage: usage.cpu_us,
    "rss_peak_bytes": lambda usage: usage.rss_peak_bytes,
}


def job(tables: Tables, application: str, job_id: bytes) -> Act[JobRecord | None]:
    """A job as it stands, with its closed attempts; None when this application has none of that id."""
    return act("job", lambda: _job(tables, application, job_id), reads_only=True)


def _job(tables: Tables, application: str, job_id: bytes) -> JobRecord | None:
    key = tables.jobs_by_id.get(job_id)
    if key is None or tables.rows[key].command.application != application:
        return None
    row = tables.rows[key]
    waits = row.state in {JobState.PENDING, JobState.RETRYING}
    return JobRecord(
        job_id=job_id,
        kind=row.command.kind,
        lane=row.command.lane,
        state=row.state,
        code=None if row.state in LEASED_STATES else row.code,
        generation=row.generation,
        revision=row.revision,
        executions=row.executions,
        max_executions=row.command.policy.max_executions,
        created_at_ms=row.created_at_ms,
        due_at_ms=row.due_at_ms if waits else None,
        ended_at_ms=row.ended_at_ms,
        tenant=row.command.tenant,
        result=row.result,
        attempts=list(row.history),
    )


def outlook(
    tables: Tables, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], clock: Clock
) -> Act[Outlook]:
    """What is left for a worker of these lanes and kinds."""
    return act("outlook", lambda: _outlook(tables, application, lanes, kinds, clock.now_ms()), reads_only=True)


def _outlook(tables: Tables, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], now_ms: int) -> Outlook:
    waiting = [row for lane in lanes for row in tables.waiting(application, lane)]
    decodable = [row for row in waiting if row.command.kind in kinds]
    due = [row for row in decodable if row.due_at_ms <= now_ms]
    later = [row for row in decodable if row.due_at_ms > now_ms]
    leased = [row for row in tables.leased(application) if row.command.lane in lanes and row.command.kind in kinds]
    return Outlook(
        due=len(due),
        later=len(later),
        leased=len(leased),
        undecodable=len(waiting) - len(decodable),
        retrying=sum(row.state is JobState.RETRYING for row in later),
        oldest_due_ms=max((now_ms - row.due_at_ms for row in due), default=None),
    )


def costliest(tables: Tables, application: str, by: str, limit: int) -> Act[list[CostlyRun]]:
    """The attempts with the highest ``cpu_us`` or ``rss_peak_bytes``, costliest first; unmeasured ones are left out."""
    cost = _COSTS.get(by)
    if cost is None:
        raise InvalidArgument("invalid_argument", f"runs are ranked by {' or '.join(_COSTS)}, this is {by!r}")
    return act("costliest", lambda: _costliest(tables, application, cost, limit), reads_only=True)


def _costliest(tables: Tables, application: str, cost: Callable[[Usage], int | None], limit: int) -> list[CostlyRun]:
    runs = [
        (value, run)
        for row in tables.rows.values()
        if row.command.application == application
        for value, run in _measured(row, cost)
    ]
    runs.sort(key=lambda costed: -costed[0])
    return [run for _, run in runs[:limit]]


def _measured(row: JobRow, cost: Callable[[Usage], int | None]) -> list[tuple[int, CostlyRun]]:
    return [
        (
            value,
            CostlyRun(
                job_id=row.command.job_id,
                kind=row.command.kind,
                number=record.number,
                outcome=record.outcome,
                usage=record.usage,
            ),
        )
        for record in row.history
        if record.usage is not None and (value := cost(record.usage)) is not None
    ]
