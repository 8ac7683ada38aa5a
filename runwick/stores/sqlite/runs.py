"""Runs: the attempts that ended last with what they cost, and how far behind each queue is."""

from collections import Counter, defaultdict

from runwick.contracts.ambient import Clock
from runwick.contracts.listing import COUNTED_MAX, EXAMINED_MAX, RUNS_MAX, Backlog, RunRecord, Within
from runwick.contracts.outcomes import Death
from runwick.contracts.stores import Act
from runwick.contracts.usage import Usage
from runwick.stores.damage import maybe_read
from runwick.stores.listing import narrowed
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import json_list, json_text
from runwick.stores.sqlite.lists import Row, seen
from runwick.stores.sqlite.ready import survey
from runwick.stores.sqlite.walks import START, kinds_of, lanes_of, walk_of_runs
from runwick.stores.steps import Step, Steps


def runs(interned: Interned, application: str, name: str | None, within: Within, limit: int) -> Act[list[RunRecord]]:
    """The attempts that ended last, the latest first."""
    return Act("runs", lambda: _runs(interned, application, name, within, min(limit, RUNS_MAX)), reads_only=True)


def _runs(interned: Interned, application: str, name: str | None, within: Within, limit: int) -> Steps[list[RunRecord]]:
    """Those of one type are looked for twice: among what ended last, where a long backlog of its own hides nothing,
    and among its last jobs, where the runs of busier types do not."""
    yield from interned.refresh()
    number = interned.applications.ids.get(application)
    where = narrowed(None, None, within)
    if number is None or where.nowhere:
        return []
    may_see = seen(interned, number, within)
    kinds = None if name is None else json_list(kinds_of(interned, number, name))
    rows: list[Row] = yield Step("runs_last", (EXAMINED_MAX, number, kinds, *may_see, limit))
    if name is not None and len(rows) < limit:
        walk = yield from walk_of_runs(interned, number, name, where.queues)
        places = yield from walk(START, EXAMINED_MAX)
        further = yield Step("runs_of_jobs", (json_list(job for _, job in places), *may_see, limit))
        rows = sorted({*rows, *further}, reverse=True)[:limit]
    return [_record(interned, *row) for row in rows]


def _record(
    interned: Interned,
    _: int,
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
        kind=interned.kinds.values[kind][1],
        queue=interned.lanes.values[lane][1].queue,
        tenant=tenant,
        outcome=outcome,
        code=code,
        begun_at_ms=begun_at_ms,
        ended_at_ms=ended_at_ms,
        payload_bytes=payload_bytes,
        usage=maybe_read(usage, Usage),
        death=None if died is None else died.cause,
    )


def backlogs(interned: Interned, application: str, clock: Clock) -> Act[list[Backlog]]:
    """Every queue with live jobs, by name."""
    return Act("backlogs", lambda: _backlogs(interned, application, clock), reads_only=True)


def _backlogs(interned: Interned, application: str, clock: Clock) -> Steps[list[Backlog]]:
    yield from interned.refresh()
    now_ms = clock.now_ms()
    number = interned.applications.ids.get(application)
    if number is None:
        return []
    lanes: defaultdict[str, list[int]] = defaultdict(list)
    for lane in lanes_of(interned, number, None):
        lanes[_queue_of(interned, lane)].append(lane)
    waiting = yield from survey([lane for own in lanes.values() for lane in own])
    runs_of: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    due_at_ms: dict[str, int] = {}
    for lane, kind, first_due_at_ms in waiting:
        queue = _queue_of(interned, lane)
        runs_of[queue].append((lane, kind))
        due_at_ms[queue] = min(first_due_at_ms, due_at_ms.get(queue, first_due_at_ms))
    leased: Counter[str] = Counter()
    # No more than there are executors, and what was handed to them ahead.
    for lane, _, many in (yield Step("outlook_leased", (number,))):
        leased[_queue_of(interned, lane)] += many
    queues = json_text([(runs_of[queue], own) for queue, own in lanes.items()])
    counted: list[tuple[int, ...]] = yield Step("backlog", (queues, now_ms, COUNTED_MAX))
    found = [
        Backlog(
            queue=queue,
            due=due,
            later=later,
            blocked=blocked,
            leased=min(leased[queue], COUNTED_MAX),
            oldest_due_at_ms=due_at_ms[queue] if due else None,
        )
        for queue, (_, due, later, blocked) in zip(lanes, sorted(counted), strict=True)
        if due or later or blocked or leased[queue]
    ]
    return sorted(found, key=lambda backlog: backlog.queue)


def _queue_of(interned: Interned, lane: int) -> str:
    return interned.lanes.values[lane][1].queue
