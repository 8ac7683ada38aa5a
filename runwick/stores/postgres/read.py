"""Reads: one job as it stands, what is left for a worker, and the runs that cost most."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.outcomes import BlackBox, Death, ErrorDetail
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import Act, AttemptRecord, CostlyRun, JobRecord, Outlook
from runwick.contracts.usage import Usage
from runwick.stores.damage import maybe_read
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.steps import Step, Steps

_COSTLIEST: Final = {"cpu_us": "costliest_cpu", "rss_peak_bytes": "costliest_rss"}
_JOB_COLUMNS: Final = 21
"""Of a row of ``job.sql``, so many are the job's."""


def job(bound: Bound, application: str, job_id: bytes) -> Act[JobRecord | None]:
    """A job as it stands, with its closed attempts; None when this application has none of that id."""
    return Act("job", lambda: _job(bound, application, job_id), reads_only=True)


def _job(bound: Bound, application: str, job_id: bytes) -> Steps[JobRecord | None]:
    rows = yield Step("job", (*bound.reading(), application, packed.Id(job_id)))
    if not rows:
        return None
    (
        name,
        version,
        queue,
        priority,
        tenant,
        created_at_ms,
        policy,
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
        attempt_id,
        begun_at_ms,
        payload_bytes,
    ) = rows[0][:_JOB_COLUMNS]
    attempts = [row[_JOB_COLUMNS:] for row in rows if row[_JOB_COLUMNS] is not None]
    return JobRecord(
        job_id=job_id,
        kind=Kind(name, version),
        lane=Lane(queue, Priority(priority)),
        state=JobState(state),
        code=code,
        generation=generation,
        revision=revision,
        executions=executions,
        max_executions=msgspec.json.decode(policy, type=JobPolicy).max_executions,
        created_at_ms=created_at_ms,
        due_at_ms=due_at_ms,
        ended_at_ms=ended_at_ms,
        tenant=tenant,
        payload_bytes=payload_bytes,
        result=attempts[-1][-1] if attempts and state == JobState.SUCCEEDED else None,
        attempts=[_attempt_record(*attempt[:-1]) for attempt in attempts],
        expires_at_ms=expires_at_ms,
        cancel_requested_at_ms=cancel_requested_at_ms,
        crashes=crashes,
        worker=worker,
        attempt_id=attempt_id,
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


def outlook(bound: Bound, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> Act[Outlook]:
    """What is left for a worker of these lanes and kinds."""
    return Act("outlook", lambda: _outlook(bound, application, lanes, kinds), reads_only=True)


def _outlook(bound: Bound, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> Steps[Outlook]:
    intake = yield from bound.names.intake(application, lanes, kinds)
    if intake is None:
        return Outlook(due=0, later=0, leased=0, undecodable=0, postponed=0, oldest_due_ms=None)
    columns = packed.number(intake.application), packed.numbers(intake.lanes), packed.numbers(tuple(intake.kinds))
    ((due, later, leased, undecodable, postponed, oldest_due_ms, blocked, paused),) = yield Step(
        "outlook", (*bound.reading(), *columns)
    )
    return Outlook(
        due=due,
        later=later,
        leased=leased,
        undecodable=undecodable,
        postponed=postponed,
        oldest_due_ms=oldest_due_ms,
        blocked=blocked,
        paused=paused,
    )


def costliest(bound: Bound, application: str, by: str, limit: int) -> Act[list[CostlyRun]]:
    """The attempts with the highest ``cpu_us`` or ``rss_peak_bytes``, costliest first; unmeasured ones are left out.

    It reads every attempt that is kept: a question for people, not for loops.
    """
    statement = _COSTLIEST.get(by)
    if statement is None:
        raise InvalidArgument("invalid_argument", f"runs are ranked by {' or '.join(_COSTLIEST)}, this is {by!r}")
    return Act("costliest", lambda: _costliest(bound, statement, application, limit), reads_only=True)


def _costliest(bound: Bound, statement: str, application: str, limit: int) -> Steps[list[CostlyRun]]:
    rows: list[tuple[Any, ...]] = yield Step(statement, (*bound.reading(), application, packed.number(limit)))
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
