"""Lists: jobs, runs and the audit trail from the latest on, how far behind each queue is, and which types there are.

A walk goes from the latest to the earliest and ends a page where it is full, or when it has looked at enough.
"""

from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.history import AuditRecord, EventKind
from runwick.contracts.listing import (
    COUNTED_MAX,
    EXAMINED_MAX,
    RUNS_MAX,
    AuditFilter,
    AuditList,
    Backlog,
    JobFilter,
    JobPage,
    JobSummary,
    RunRecord,
    Within,
)
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act, AttemptRecord
from runwick.stores.cursors import cursor_at
from runwick.stores.listing import Walk, covers, ended_as
from runwick.stores.memory.rows import JobRow
from runwick.stores.memory.tables import Tables, act

T = TypeVar("T")

_START: Final = 10**18
"""In front of every place."""


def jobs(
    tables: Tables, application: str, chosen: JobFilter, within: Within, after: str | None, limit: int
) -> Act[JobPage]:
    """Up to `limit` jobs behind that cursor, the latest first."""
    return act("jobs", lambda: _jobs(tables, application, chosen, within, after, limit), reads_only=True)


def _jobs(
    tables: Tables, application: str, chosen: JobFilter, within: Within, after: str | None, limit: int
) -> JobPage:
    walk = Walk(tables.store_id, chosen)
    start = _START if after is None else walk.place(after)
    state = ended_as(chosen)
    steps = _by_creation(tables, start) if state is None else _by_end(tables, state, start)
    wanted = (
        (place, _summary(row) if row is not None and _is_chosen(row, application, chosen, within) else None)
        for place, row in steps
    )
    found, place = _page(wanted, limit)
    return JobPage(found, None if place is None else walk.cursor(place))


def _page(wanted: Iterator[tuple[int, T | None]], limit: int) -> tuple[list[T], int | None]:
    """The first ones that are wanted among as many as a page looks at, and behind which place more may follow."""
    found: list[T] = []
    last: int | None = None
    for looked_at, (place, item) in enumerate(wanted):
        if looked_at == EXAMINED_MAX or len(found) == limit:
            return found, last
        last = place
        if item is not None:
            found.append(item)
    return found, None


def _by_creation(tables: Tables, start: int) -> Iterator[tuple[int, JobRow | None]]:
    """Behind `start`, the latest first; so the next."""
    return ((job, tables.rows[job]) for job in range(min(start - 1, len(tables.rows)), 0, -1))


def _by_end(tables: Tables, state: JobState, start: int) -> Iterator[tuple[int, JobRow | None]]:
    """Without a job where that end is not how it stands: it was retried since."""
    for place in range(min(start - 1, len(tables.events)), 0, -1):
        _, event = tables.events[place - 1]
        if event.what is EventKind.JOB_ENDED and event.state == state.value:
            row = tables.rows[tables.jobs_by_id[event.job_id]]
            yield place, row if row.state.terminal and row.generation == event.generation else None


def _is_chosen(row: JobRow, application: str, chosen: JobFilter, within: Within) -> bool:
    command = row.command
    return (
        command.application == application
        and (chosen.states is None or row.state in chosen.states)
        and (chosen.queue is None or command.lane.queue == chosen.queue)
        and (chosen.name is None or command.kind.name == chosen.name)
        and (chosen.tenant is None or command.tenant == chosen.tenant)
        and (chosen.code is None or row.shown_code == chosen.code)
        and (chosen.created_from_ms is None or row.created_at_ms >= chosen.created_from_ms)
        and (chosen.created_until_ms is None or row.created_at_ms < chosen.created_until_ms)
        and covers(within, command.lane.queue, command.tenant)
    )


def _summary(row: JobRow) -> JobSummary:
    command = row.command
    return JobSummary(
        job_id=command.job_id,
        kind=command.kind,
        lane=command.lane,
        state=row.state,
        code=row.shown_code,
        generation=row.generation,
        revision=row.revision,
        executions=row.executions,
        max_executions=command.policy.max_executions,
        created_at_ms=row.created_at_ms,
        due_at_ms=row.due_at_ms if row.waits else None,
        begun_at_ms=None if row.lease is None else row.lease.begun_at_ms,
        ended_at_ms=row.ended_at_ms,
        cancel_requested_at_ms=row.cancel_requested_at_ms,
        tenant=command.tenant,
        payload_bytes=len(command.payload),
    )


def runs(tables: Tables, application: str, name: str | None, within: Within, limit: int) -> Act[list[RunRecord]]:
    """The attempts that ended last, the latest first."""
    return act("runs", lambda: _runs(tables, application, name, within, min(limit, RUNS_MAX)), reads_only=True)


def _runs(tables: Tables, application: str, name: str | None, within: Within, limit: int) -> list[RunRecord]:
    found: list[RunRecord] = []
    for whose, event in reversed(tables.events):
        if len(found) == limit:
            break
        row = tables.rows[tables.jobs_by_id[event.job_id]]
        if (
            event.what is EventKind.ATTEMPT_ENDED
            and whose == application
            and name in (None, event.kind.name)
            and covers(within, event.lane.queue, row.command.tenant)
        ):
            (record,) = (record for record in row.history if record.attempt_id == event.attempt_id)
            found.append(_run(row, record))
    return found


def _run(row: JobRow, record: AttemptRecord) -> RunRecord:
    command = row.command
    return RunRecord(
        job_id=command.job_id,
        generation=record.generation,
        number=record.number,
        kind=command.kind,
        queue=command.lane.queue,
        tenant=command.tenant,
        outcome=record.outcome,
        code=record.code,
        begun_at_ms=record.begun_at_ms,
        ended_at_ms=record.ended_at_ms,
        payload_bytes=len(command.payload),
        usage=record.usage,
        death=None if record.death is None else record.death.cause,
    )


def backlogs(tables: Tables, application: str, clock: Clock) -> Act[list[Backlog]]:
    """Every queue with live jobs, by name."""
    return act("backlogs", lambda: _backlogs(tables, application, clock.now_ms()), reads_only=True)


def _backlogs(tables: Tables, application: str, now_ms: int) -> list[Backlog]:
    live: dict[str, list[JobRow]] = {}
    for row in tables.rows.values():
        if row.command.application == application and not row.state.terminal:
            live.setdefault(row.command.lane.queue, []).append(row)
    return [_backlog(queue, rows, now_ms) for queue, rows in sorted(live.items())]


def _backlog(queue: str, rows: list[JobRow], now_ms: int) -> Backlog:
    in_lane = [row for row in rows if row.waits and row.line is None]
    due = [row.due_at_ms for row in in_lane if row.due_at_ms <= now_ms]
    blocked = sum(row.line is not None for row in rows)
    return Backlog(
        queue=queue,
        due=min(len(due), COUNTED_MAX),
        later=min(len(in_lane) - len(due), COUNTED_MAX),
        blocked=min(blocked, COUNTED_MAX),
        leased=min(len(rows) - len(in_lane) - blocked, COUNTED_MAX),
        oldest_due_at_ms=min(due, default=None),
    )


def names(tables: Tables, application: str) -> Act[list[str]]:
    """The stored names of all job types that ever had a job, sorted."""
    return act("names", lambda: _names(tables, application), reads_only=True)


def _names(tables: Tables, application: str) -> list[str]:
    return sorted({row.command.kind.name for row in tables.rows.values() if row.command.application == application})


def audited(tables: Tables, application: str, chosen: AuditFilter, after: str | None, limit: int) -> Act[AuditList]:
    """Up to `limit` records of the audit trail behind that cursor, the latest first."""
    return act("audited", lambda: _audited(tables, application, chosen, after, limit), reads_only=True)


def _audited(tables: Tables, application: str, chosen: AuditFilter, after: str | None, limit: int) -> AuditList:
    walk = Walk(tables.store_id, chosen)
    start = _START if after is None else walk.place(after)
    wanted = (
        (place, record if whose == application and _is_meant(record, chosen) else None)
        for place in range(min(start - 1, len(tables.audit)), 0, -1)
        for whose, record in (tables.audit[place - 1],)
    )
    found, place = _page(wanted, limit)
    shown = [msgspec.structs.replace(record, cursor=cursor_at(tables.store_id, record.cursor)) for record in found]
    return AuditList(shown, None if place is None else walk.cursor(place))


def _is_meant(record: AuditRecord, chosen: AuditFilter) -> bool:
    target = record.target
    return (
        chosen.action in (None, record.action)
        and chosen.actor in (None, record.actor)
        and chosen.job_id in (None, record.job_id)
        and (chosen.target is None or (target is not None and chosen.target in (target, target.partition(" ")[0])))
        and (chosen.at_from_ms is None or record.at_ms >= chosen.at_from_ms)
        and (chosen.at_until_ms is None or record.at_ms < chosen.at_until_ms)
    )
