"""Lists: jobs and the audit trail from the latest on, and which types there are.

A page looks at a few jobs first and at more the fewer it finds, until it is full or has looked at enough::

    walk ──▶ some places ──▶ list_jobs: how these jobs stand, and whether they are asked for ──▶ full? ──▶ the page
     ▲                                                                                            │ no
     └──────────────────────────── more of them, in front of the last place ◀────────────────────┘
"""

from collections.abc import Sequence
from typing import Any, Final

from runwick.contracts.listing import EXAMINED_MAX, AuditFilter, AuditList, JobFilter, JobPage, JobSummary, Within
from runwick.contracts.states import TERMINAL_STATES, JobState
from runwick.contracts.stores import Act
from runwick.stores import listing
from runwick.stores.cursors import cursor_at
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.history import audit_record
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import json_list, json_text
from runwick.stores.sqlite.walks import START, Walk, bounds_of, kinds_of, lanes_of, walk_for
from runwick.stores.steps import Step, Steps

_GROWTH: Final = 4
"""How many times as many are looked at, where a page is not full yet."""
Row = tuple[Any, ...]


def jobs(
    gate: Gate,
    interned: Interned,
    application: str,
    chosen: JobFilter,
    within: Within,
    after: str | None,
    limit: int,
) -> Act[JobPage]:
    """Up to `limit` jobs behind that cursor, the latest first."""
    return Act("jobs", lambda: _jobs(gate, interned, application, chosen, within, after, limit), reads_only=True)


def _jobs(
    gate: Gate,
    interned: Interned,
    application: str,
    chosen: JobFilter,
    within: Within,
    after: str | None,
    limit: int,
) -> Steps[JobPage]:
    cursors = _cursors(gate, chosen)
    start = START if after is None else cursors.place(after)
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    if number is None or listing.narrowed(chosen.queue, chosen.tenant, within).nowhere:
        return JobPage([], None)
    walk = yield from walk_for(interned, number, chosen, within)
    floor, ceiling = yield from bounds_of(chosen)
    start = min(start, ceiling)
    rows, place = yield from _page(walk, _asked(interned, number, chosen, within), start, floor, limit)
    return JobPage([_summary(interned, row) for row in rows], None if place is None else cursors.cursor(place))


def _page(
    walk: Walk, asked: Sequence[object], start: int, floor: int, limit: int
) -> Steps[tuple[list[Row], int | None]]:
    """The rows of a page, and behind which place more may follow.

    Args:
        start: in front of which place it begins.
        floor: where it ends at the latest.
    """
    rows: list[Row] = []
    looked_at, many = 0, limit + 1
    while True:
        many = min(many, EXAMINED_MAX - looked_at)
        places = [place for place in (yield from walk(start, many)) if place[0] >= floor]
        if places:
            rows += yield Step("list_jobs", (json_text(dict(places)), *asked, limit + 1 - len(rows)))
            start = places[-1][0]
        if len(rows) > limit:
            return rows[:limit], rows[limit - 1][0]
        if len(places) < many:
            return rows, None
        looked_at += many
        if looked_at == EXAMINED_MAX:
            return rows, start
        many *= _GROWTH


def _asked(interned: Interned, application: int, chosen: JobFilter, within: Within) -> tuple[object, ...]:
    """What ``list_jobs.sql`` takes in between."""
    return (
        application,
        None if chosen.states is None else json_text(sorted(chosen.states)),
        chosen.code,
        None if chosen.queue is None else json_list(lanes_of(interned, application, {chosen.queue})),
        None if chosen.name is None else json_list(kinds_of(interned, application, chosen.name)),
        chosen.tenant,
        chosen.created_from_ms,
        chosen.created_until_ms,
        *seen(interned, application, within),
        chosen.states is None or bool(chosen.states & TERMINAL_STATES),
    )


def seen(interned: Interned, application: int, within: Within) -> tuple[str | None, str, str]:
    """What may be seen, as statements take it: lanes, tenants, and pairs of both."""
    if within is None:
        return None, "[]", "[]"
    lanes: list[int] = []
    tenants: list[str] = []
    pairs: list[tuple[int, str]] = []
    for reach in within:
        names = None if reach.tenants is None else [tenant or "" for tenant in reach.tenants]
        if names is None:
            lanes += lanes_of(interned, application, reach.queues)
        elif reach.queues is None:
            tenants += names
        else:
            pairs += [(lane, name) for lane in lanes_of(interned, application, reach.queues) for name in names]
    return json_list(lanes), json_text(tenants), json_text(pairs)


def _summary(interned: Interned, row: Row) -> JobSummary:
    (
        _,
        job_id,
        lane,
        kind,
        policy,
        tenant,
        created_at_ms,
        payload_bytes,
        state,
        code,
        generation,
        revision,
        executions,
        due_at_ms,
        begun_at_ms,
        ended_at_ms,
        cancel_requested_at_ms,
    ) = row
    return JobSummary(
        job_id=job_id,
        kind=interned.kinds.values[kind][1],
        lane=interned.lanes.values[lane][1],
        state=JobState(state),
        code=code,
        generation=generation,
        revision=revision,
        executions=executions,
        max_executions=interned.policies.values[policy].max_executions,
        created_at_ms=created_at_ms,
        due_at_ms=due_at_ms,
        begun_at_ms=begun_at_ms,
        ended_at_ms=ended_at_ms,
        cancel_requested_at_ms=cancel_requested_at_ms,
        tenant=tenant,
        payload_bytes=payload_bytes,
    )


def names(interned: Interned, application: str) -> Act[list[str]]:
    """The stored names of all job types that ever had a job, sorted."""
    return Act("names", lambda: _names(interned, application), reads_only=True)


def _names(interned: Interned, application: str) -> Steps[list[str]]:
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    if number is None:
        return []
    present = yield Step("list_present", (json_list(lanes_of(interned, number, None)),))
    return sorted({interned.kinds.values[kind][1].name for _, kind in present})


def audited(
    gate: Gate, interned: Interned, application: str, chosen: AuditFilter, after: str | None, limit: int
) -> Act[AuditList]:
    """Up to `limit` records of the audit trail behind that cursor, the latest first."""
    return Act("audited", lambda: _audited(gate, interned, application, chosen, after, limit), reads_only=True)


def _audited(
    gate: Gate, interned: Interned, application: str, chosen: AuditFilter, after: str | None, limit: int
) -> Steps[AuditList]:
    cursors = _cursors(gate, chosen)
    start = START if after is None else cursors.place(after)
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    if number is None:
        return AuditList([], None)
    # One job's rows are few, and have an index.
    bounds = () if chosen.job_id is not None else (yield Step("audited_floor", (start, EXAMINED_MAX)))
    floor = next((position for (position,) in bounds), None)
    wishes = (chosen.action, chosen.actor, chosen.target, chosen.at_from_ms, chosen.at_until_ms)
    asked: tuple[object, ...] = (number, 0 if floor is None else floor - 1, start, *wishes, limit + 1)
    if chosen.job_id is None:
        rows: list[Row] = yield Step("audited", asked)
    else:
        rows = yield Step("audited_of_job", (*asked, chosen.job_id))
    place = rows[limit - 1][0] if len(rows) > limit else floor
    assert gate.store_id is not None, "a transaction that has begun has met the store"
    records = [audit_record(cursor_at(gate.store_id, row[0]), *row[1:]) for row in rows[:limit]]
    return AuditList(records, None if place is None else cursors.cursor(place))


def _cursors(gate: Gate, chosen: JobFilter | AuditFilter) -> listing.Walk:
    assert gate.store_id is not None, "a transaction that has begun has met the store"
    return listing.Walk(gate.store_id, chosen)
