"""How a run's life is told: attempts, the end of each generation, and what opened the next."""

import msgspec

from runwick.contracts.states import JobState, Priority
from runwick.contracts.usage import Usage
from runwick.management.bodies import AttemptBody, AuditBody, JobDetailBody
from runwick.management.dashboard.history import marked, steps
from runwick.management.desk.shown import usage_body

JOB = "0199c0de-0000-7000-8000-000000000001"


def at(minute: int, second: int = 0) -> str:
    return f"2026-11-29T12:{minute:02}:{second:02}.000Z"


def attempt(generation: int, number: int, minute: int, outcome: str, code: str | None) -> AttemptBody:
    """It began within that minute and ran for two seconds."""
    return AttemptBody(
        attempt_id=f"0199c0de-0000-7000-8000-00000000{generation:02}{number:02}",
        generation=generation,
        number=number,
        outcome=outcome,
        code=code,
        begun_at=at(minute, 1),
        ended_at=at(minute, 3),
        worker=None,
        delay_ms=None,
        usage=None,
        death=None,
        has_error=False,
        has_black_box=False,
    )


def run(generation: int, attempts: list[AttemptBody], state: JobState, code: str | None = None) -> JobDetailBody:
    return JobDetailBody(
        job_id=JOB,
        name="reports.build",
        version=1,
        queue="reports",
        priority=Priority.MEDIUM,
        state=state,
        handed_over=False,
        code=code,
        generation=generation,
        revision=9,
        executions=1,
        max_executions=3,
        created_at=at(0),
        due_at=at(30) if state is JobState.PENDING else None,
        begun_at=None,
        ended_at=None if state is JobState.PENDING else attempts[-1].ended_at,
        cancel_requested_at=None,
        tenant=None,
        payload_bytes=2,
        expires_at=None,
        has_result=False,
        attempts=tuple(attempts),
        running=None,
    )


def record(action: str, generation: int, minute: int, before: str, reason: str | None = None) -> AuditBody:
    return AuditBody(
        at=at(minute),
        actor="olivia",
        actor_display="Olivia Park",
        actor_scheme="basic",
        action=action,
        target=None,
        job_id=JOB,
        generation=generation,
        before=before,
        after="pending",
        reason=reason,
        command_id=None,
    )


def told(job: JobDetailBody, *records: AuditBody) -> list[tuple[str, str | None, int | None]]:
    """Text, time and seconds since the step before."""
    return [
        (step.text, step.at, None if step.took_us is None else step.took_us // 1_000_000)
        for step in steps(job, records)
    ]


FAILED = attempt(1, 1, 5, "failed", "handler_failed")


def test_a_run_of_one_generation_ends_once() -> None:
    assert told(run(1, [FAILED], JobState.FAILED, "executions_exhausted")) == [
        ("Created", at(0), None),
        ("Attempt 1 began", at(5, 1), 301),
        ("Attempt 1: failed", at(5, 3), 2),
        ("Failed: executions exhausted", at(5, 3), None),
    ]


def test_what_failed_and_was_retried_waits_from_the_retry_on() -> None:
    job = run(2, [FAILED, attempt(2, 1, 20, "succeeded", None)], JobState.SUCCEEDED)
    retried = record("retry", 2, 20, "failed", "a new frame is there")
    assert told(job, record("look", 2, 21, "running"), retried)[3:] == [
        ("Failed: handler failed", at(5, 3), None),
        ("Retried by Olivia Park", at(20), None),
        ("Generation 2, attempt 1 began", at(20, 1), 1),
        ("Generation 2, attempt 1: succeeded", at(20, 3), 2),
        ("Succeeded", at(20, 3), None),
    ]
    assert [step.reason for step in steps(job, [retried])][3:6] == [None, "a new frame is there", None]


def test_whoever_may_not_read_the_trail_sees_that_a_generation_was_opened_and_no_wait_that_nobody_knows() -> None:
    job = run(2, [FAILED, attempt(2, 1, 20, "succeeded", None)], JobState.SUCCEEDED)
    assert told(job)[3:6] == [
        ("Failed: handler failed", at(5, 3), None),
        ("Generation 2 was opened", None, None),
        ("Generation 2, attempt 1 began", at(20, 1), None),
    ]


def test_a_generation_that_was_cancelled_before_it_began_or_between_attempts_did_not_fail() -> None:
    job = run(3, [FAILED], JobState.PENDING)
    records = (record("retry", 3, 20, "cancelled"), record("retry", 2, 10, "cancelled"))
    assert told(job, *records)[3:] == [
        ("Cancelled", None, None),
        ("Retried by Olivia Park", at(10), None),
        ("Cancelled", None, None),
        ("Retried by Olivia Park", at(20), None),
        ("Due", at(30), None),
    ]


def test_what_succeeded_and_was_rerun_says_so() -> None:
    job = run(2, [attempt(1, 1, 5, "succeeded", None)], JobState.PENDING)
    assert told(job, record("rerun", 2, 9, "succeeded"))[3:5] == [
        ("Succeeded", at(5, 3), None),
        ("Rerun by Olivia Park", at(9), None),
    ]


def test_the_attempt_that_is_compared_is_named_with_its_own_generation() -> None:
    cost = usage_body(Usage(wall_us=5))
    job = run(2, [msgspec.structs.replace(FAILED, usage=cost)], JobState.PENDING)
    compared = marked(job)
    assert compared is not None
    assert (compared.generation, compared.number, compared.wall_us) == (FAILED.generation, FAILED.number, 5)
    assert FAILED.generation == 1
