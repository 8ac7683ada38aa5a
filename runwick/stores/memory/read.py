"""Reads: one job as it stands, what is left for a worker, the runs that cost most, and who works."""

from collections.abc import Callable, Sequence
from typing import Final

from runwick.contracts.activity import StackAnswer, WorkerRecord
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act, CostlyRun, JobRecord, Outlook
from runwick.contracts.usage import Usage
from runwick.stores.memory.rows import JobRow
from runwick.stores.memory.tables import Tables, act

_COSTS: Final[dict[str, Callable[[Usage], int | None]]] = {
    "cpu_us": lambda usage: usage.cpu_us,
    "rss_peak_bytes": lambda usage: usage.rss_peak_bytes,
}

_SEEN_WITHIN_MS: Final = 24 * 60 * 60 * 1000


def job(tables: Tables, application: str, job_id: bytes) -> Act[JobRecord | None]:
    """A job as it stands, with its closed attempts; None when this application has none of that id."""
    return act("job", lambda: _job(tables, application, job_id), reads_only=True)


def _job(tables: Tables, application: str, job_id: bytes) -> JobRecord | None:
    row = tables.find(application, job_id)
    if row is None:
        return None
    lease = row.lease
    return JobRecord(
        job_id=job_id,
        kind=row.command.kind,
        lane=row.command.lane,
        state=row.state,
        code=row.shown_code,
        generation=row.generation,
        revision=row.revision,
        executions=row.executions,
        max_executions=row.command.policy.max_executions,
        created_at_ms=row.created_at_ms,
        due_at_ms=row.due_at_ms if row.waits else None,
        ended_at_ms=row.ended_at_ms,
        tenant=row.command.tenant,
        payload_bytes=len(row.command.payload),
        result=row.result,
        attempts=list(row.history),
        expires_at_ms=None if row.state.terminal else row.expires_at_ms,
        cancel_requested_at_ms=row.cancel_requested_at_ms,
        crashes=0 if row.state.terminal else row.crashes,
        worker=None if lease is None else lease.worker,
        attempt_id=None if lease is None else lease.attempt_id,
        begun_at_ms=None if lease is None else lease.begun_at_ms,
    )


def workers(tables: Tables, application: str, clock: Clock) -> Act[list[WorkerRecord]]:
    """Who was seen within 24 hours, the latest start first."""
    return act("workers", lambda: _workers(tables, application, clock.now_ms()), reads_only=True)


def _workers(tables: Tables, application: str, now_ms: int) -> list[WorkerRecord]:
    records = [
        WorkerRecord(
            presence=worker.presence,
            seen_at_ms=worker.seen_at_ms,
            departed_at_ms=worker.departed_at_ms,
            told_at_ms=worker.told_at_ms,
            executors=list(worker.executors),
        )
        for worker in tables.workers.values()
        if worker.presence.application == application and worker.seen_at_ms >= now_ms - _SEEN_WITHIN_MS
    ]
    # Their ids grow with the time at which they started.
    return sorted(records, key=lambda record: record.presence.worker, reverse=True)


def stack(tables: Tables, application: str, attempt_id: bytes) -> Act[StackAnswer | None]:
    """The stack that was asked for, once its worker has answered."""
    return act("stack", lambda: _stack(tables, application, attempt_id), reads_only=True)


def _stack(tables: Tables, application: str, attempt_id: bytes) -> StackAnswer | None:
    look = tables.looks.get(attempt_id)
    if look is None or look.text is None or tables.rows[look.job].command.application != application:
        return None
    return StackAnswer(attempt_id, look.text)


def outlook(
    tables: Tables, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], clock: Clock
) -> Act[Outlook]:
    """What is left for a worker of these lanes and kinds."""
    return act("outlook", lambda: _outlook(tables, application, lanes, kinds, clock.now_ms()), reads_only=True)


def _outlook(tables: Tables, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], now_ms: int) -> Outlook:
    waiting, paused = [], 0
    for row in tables.rows.values():
        if row.waits and row.command.application == application and row.command.lane in lanes:
            if tables.is_paused(application, row.command.lane.queue):
                paused += 1
            else:
                waiting.append(row)
    decodable = [row for row in waiting if row.command.kind in kinds]
    due = [row for row in decodable if row.due_at_ms <= now_ms]
    later = [row for row in decodable if row.due_at_ms > now_ms]
    leased = [row for row in tables.leased(application) if row.command.lane in lanes and row.command.kind in kinds]
    return Outlook(
        due=len(due),
        later=len(later),
        leased=len(leased),
        undecodable=len(waiting) - len(decodable),
        postponed=sum(row.state is JobState.RETRYING or row.called is not None for row in later),
        oldest_due_ms=max((now_ms - row.due_at_ms for row in due), default=None),
        blocked=sum(row.line is not None for row in due),
        paused=paused,
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
