"""Reads: one job as it stands, what is left for a worker, and the runs that cost most."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.outcomes import BlackBox, Death, ErrorDetail
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import Act, AttemptRecord, CostlyRun, JobRecord, Outlook
from runwick.contracts.usage import Usage
from runwick.stores.damage import maybe_read
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import attempt_id, json_list
from runwick.stores.sqlite.ready import numbers_of, survey
from runwick.stores.steps import Step, Steps

T = TypeVar("T")

_COSTLIEST: Final = {"cpu_us": "costliest_cpu", "rss_peak_bytes": "costliest_rss"}


def job(application: str, job_id: bytes) -> Act[JobRecord | None]:
    """A job as it stands, with its closed attempts; None when this application has none of that id."""
    return Act("job", lambda: _job(application, job_id), reads_only=True)


def _job(application: str, job_id: bytes) -> Steps[JobRecord | None]:
    rows = yield Step("job", (application, job_id))
    if not rows:
        return None
    (
        (
            position,
            name,
            version,
            queue,
            priority,
            tenant,
            created_at_ms,
            max_executions,
            state,
            code,
            generation,
            revision,
            executions,
            due_at_ms,
            ended_at_ms,
            expires_at_ms,
            cancel_requested_at_ms,
            crashes,
            worker,
            first_attempt_id,
            begun_at_ms,
            payload_bytes,
        ),
    ) = rows
    attempts = yield Step("job_attempts", (position,))
    result = None
    if state == JobState.SUCCEEDED:
        result = next((row[0] for row in (yield Step("job_result", (position, generation)))), None)
    return JobRecord(
        job_id=job_id,
        kind=Kind(name, version),
        lane=Lane(queue, Priority(priority)),
        state=JobState(state),
        code=code,
        generation=generation,
        revision=revision,
        executions=executions,
        max_executions=max_executions,
        created_at_ms=created_at_ms,
        due_at_ms=due_at_ms,
        ended_at_ms=ended_at_ms,
        tenant=tenant,
        payload_bytes=payload_bytes,
        result=result,
        attempts=[_attempt_record(*row) for row in attempts],
        expires_at_ms=expires_at_ms,
        cancel_requested_at_ms=cancel_requested_at_ms,
        crashes=crashes,
        worker=worker,
        attempt_id=None if first_attempt_id is None else attempt_id(first_attempt_id, position),
        begun_at_ms=begun_at_ms,
    )


def _attempt_record(
    attempt_id: bytes,
    generation: int,
    number: int,
    outcome: str,
    code: str | None,
    begun_at_ms: int | None,
    ended_at_ms: int,
    usage: str | None,
    worker: bytes | None,
    delay_ms: int | None,
    death: str | None,
    error: str | None,
    black_box: str | None,
) -> AttemptRecord:
    return AttemptRecord(
        attempt_id=attempt_id,
        generation=generation,
        number=number,
        outcome=outcome,
        code=code,
        begun_at_ms=begun_at_ms,
        ended_at_ms=ended_at_ms,
        usage=maybe_read(usage, Usage),
        worker=worker,
        delay_ms=delay_ms,
        death=maybe_read(death, Death),
        error=maybe_read(error, ErrorDetail),
        black_box=maybe_read(black_box, BlackBox),
    )


def outlook(
    interned: Interned, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], clock: Clock
) -> Act[Outlook]:
    """What is left for a worker of these lanes and kinds."""
    return Act("outlook", lambda: _outlook(interned, application, lanes, kinds, clock), reads_only=True)


def _outlook(
    interned: Interned, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], clock: Clock
) -> Steps[Outlook]:
    intake = yield from interned.refresh()
    now_ms = clock.now_ms()
    number = interned.applications.ids.get(application)
    if number is None:
        return Outlook(due=0, later=0, leased=0, undecodable=0, postponed=0, oldest_due_ms=None)
    due = later = undecodable = blocked = paused = 0
    oldest_due_at_ms = now_ms + 1
    paused_lanes = frozenset(intake.paused_lanes(interned.lanes.values))
    for lane, kind, due_here, later_here, first_due_at_ms, in_lines in (
        yield from _waiting(interned, number, lanes, now_ms)
    ):
        if lane in paused_lanes:
            paused += due_here + later_here
        elif interned.kinds.values[kind][1] in kinds:
            due += due_here
            later += later_here
            blocked += due_here if in_lines else 0
            oldest_due_at_ms = min(oldest_due_at_ms, first_due_at_ms)
        else:
            undecodable += due_here + later_here
    leased = yield Step("outlook_leased", (number,))
    postponed = yield Step("outlook_postponed", (number, now_ms))
    return Outlook(
        due=due,
        later=later,
        leased=_mine(interned, leased, lanes, kinds),
        undecodable=undecodable,
        postponed=_mine(interned, (row for row in postponed if row[0] not in paused_lanes), lanes, kinds),
        oldest_due_ms=now_ms - oldest_due_at_ms if oldest_due_at_ms <= now_ms else None,
        blocked=blocked,
        paused=paused,
    )


class _Waiting(NamedTuple):
    """How many jobs of one kind wait in one lane, or came from there into lines."""

    lane: int
    kind: int
    due: int
    later: int
    first_due_at_ms: int
    in_lines: bool


def _waiting(interned: Interned, application: int, lanes: Sequence[Lane], now_ms: int) -> Steps[list[_Waiting]]:
    found = []
    numbers = numbers_of(interned, application, lanes)
    for lane, kind, first_due_at_ms in (yield from survey(numbers)):
        ((due, later),) = yield Step("outlook_waiting", (lane, kind, now_ms))
        found.append(_Waiting(lane, kind, due, later, first_due_at_ms, False))
    rows = yield Step("outlook_lines", (json_list(numbers), now_ms))
    return found + [_Waiting(lane, kind, due, later, first, True) for lane, kind, due, later, first in rows]


def _mine(
    interned: Interned, counts: Iterable[tuple[int, int, int]], lanes: Sequence[Lane], kinds: frozenset[Kind]
) -> int:
    """The sum of ``lane, kind, count`` over the lanes and kinds asked for."""
    return sum(
        count
        for lane, kind, count in counts
        if interned.lanes.values[lane][1] in lanes and interned.kinds.values[kind][1] in kinds
    )


def costliest(application: str, by: str, limit: int) -> Act[list[CostlyRun]]:
    """The attempts with the highest ``cpu_us`` or ``rss_peak_bytes``, costliest first; unmeasured ones are left out.

    It reads every attempt that is kept: a question for people, not for loops.
    """
    statement = _COSTLIEST.get(by)
    if statement is None:
        raise InvalidArgument("invalid_argument", f"runs are ranked by {' or '.join(_COSTLIEST)}, this is {by!r}")
    return Act("costliest", lambda: _costliest(statement, application, limit), reads_only=True)


def _costliest(statement: str, application: str, limit: int) -> Steps[list[CostlyRun]]:
    rows: list[tuple[Any, ...]] = yield Step(statement, (application, limit))
    return [
        CostlyRun(
            job_id=job_id,
            kind=Kind(name, version),
            number=number,
            outcome=outcome,
            usage=maybe_read(usage, Usage) or Usage(),
        )
        for job_id, name, version, number, outcome, usage in rows
    ]
