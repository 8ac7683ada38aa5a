"""Settle: an attempt ends once, in a batch that is fenced row by row."""

from typing import Any

import msgspec
import pytest

from runwick.contracts.errors import SettlementRejected
from runwick.contracts.outcomes import (
    BLACK_BOX_MAX_BYTES,
    Answer,
    BlackBox,
    Death,
    ErrorDetail,
    Outcome,
    OutcomeKind,
    SettledState,
    Settlement,
)
from runwick.contracts.states import JobState
from runwick.contracts.usage import Usage
from tests.conformance.ground import FAILURE, LARGE, LEASE_MS, SUCCESS, USAGE, Bench, unlike


def test_a_success_ends_the_job_and_keeps_what_it_cost(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.clock.advance_ms(30)
    outcome = Outcome(OutcomeKind.SUCCEEDED, result=b'{"pages":3}', usage=USAGE, begun_at_ms=1_750_000_000_001)
    assert bench.settle(attempt, outcome, JobState.SUCCEEDED) is Answer.DONE
    job = bench.job(attempt.job_id)
    assert (job.state, job.code, job.revision, job.executions) == (JobState.SUCCEEDED, None, 3, 1)
    assert (job.ended_at_ms, job.due_at_ms, job.result) == (bench.clock.now_ms(), None, b'{"pages":3}')
    (record,) = job.attempts
    assert (record.attempt_id, record.generation, record.number) == (attempt.attempt_id, 1, 1)
    assert (record.outcome, record.code, record.error) == ("succeeded", None, None)
    assert (record.begun_at_ms, record.ended_at_ms, record.usage) == (1_750_000_000_001, bench.clock.now_ms(), USAGE)


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_other_ends_say_why(bench: Bench, state: SettledState) -> None:
    attempt = bench.claimed()
    error = ErrorDetail("builtins.ValueError", "\u00fc \U0001f600 \n", "Traceback \u20ac")
    outcome = Outcome(OutcomeKind.FAILED, code="handler_failed", error=error)
    bench.settle(attempt, outcome, state, code="executions_exhausted")
    job = bench.job(attempt.job_id)
    assert (job.state, job.code, job.result) == (state, "executions_exhausted", None)
    assert (job.attempts[0].outcome, job.attempts[0].code, job.attempts[0].error) == ("failed", "handler_failed", error)
    assert bench.claim().attempts == []


def test_a_retry_waits_its_delay_and_counts_on(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.clock.advance_ms(40)
    assert bench.retry(attempt, 2_500) is Answer.DONE
    job = bench.job(attempt.job_id)
    assert (job.state, job.code, job.revision) == (JobState.RETRYING, "handler_failed", 3)
    assert (job.due_at_ms, job.ended_at_ms) == (bench.clock.now_ms() + 2_500, None)
    assert bench.claim().next_due_in_ms == 2_500
    bench.clock.advance_ms(2_500)
    (second,) = bench.claim().attempts
    assert (second.number, second.execution, second.crashes) == (2, 2, 0)
    assert second.attempt_id != attempt.attempt_id
    assert bench.job(attempt.job_id).code is None
    bench.succeed(second)
    assert [record.number for record in bench.job(attempt.job_id).attempts] == [1, 2]


def test_a_retry_without_delay_keeps_the_due_time_it_had(bench: Bench) -> None:
    attempt = bench.claimed()
    due_at_ms = bench.clock.now_ms()
    bench.clock.advance_ms(700)
    bench.retry(attempt, None, Outcome(OutcomeKind.INTERRUPTED, code="worker_stopping"))
    assert bench.job(attempt.job_id).due_at_ms == due_at_ms


def test_crashes_are_counted(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.retry(attempt, 0, Outcome(OutcomeKind.CRASHED, code="executor_crashed"))
    (second,) = bench.claim().attempts
    assert second.crashes == 1
    bench.retry(second, 0)
    assert bench.claim().attempts[0].crashes == 1


@pytest.mark.parametrize("first", [JobState.FAILED, JobState.SUCCEEDED])
def test_of_two_ends_of_one_attempt_in_a_batch_the_first_counts(bench: Bench, first: SettledState) -> None:
    attempt = bench.claimed()
    ends = [
        Settlement(attempt, FAILURE, JobState.FAILED, code="executions_exhausted"),
        Settlement(attempt, SUCCESS, JobState.SUCCEEDED),
    ]
    if first is JobState.SUCCEEDED:
        ends.reverse()
    assert bench.run(bench.store.settle(ends)) == [Answer.DONE, Answer.NOT_YOURS]
    assert (bench.job(attempt.job_id).state, len(bench.job(attempt.job_id).attempts)) == (first, 1)


def test_settled_twice_the_second_is_not_yours_and_writes_nothing(bench: Bench) -> None:
    attempt = bench.claimed()
    success = Settlement(attempt, SUCCESS, JobState.SUCCEEDED)
    failure = Settlement(attempt, FAILURE, JobState.FAILED)
    assert bench.run(bench.store.settle([success, failure])) == [Answer.DONE, Answer.NOT_YOURS]
    before = bench.job(attempt.job_id)
    assert bench.run(bench.store.settle([failure])) == [Answer.NOT_YOURS]
    assert bench.job(attempt.job_id) == before
    assert before.state is JobState.SUCCEEDED


def test_the_same_settlement_sent_again_is_done_and_writes_nothing(bench: Bench) -> None:
    attempt = bench.claimed()
    again = Settlement(attempt, FAILURE, JobState.RETRYING, "handler_failed", 0)
    assert bench.run(bench.store.settle([again])) == [Answer.DONE]
    before = bench.job(attempt.job_id)
    assert bench.run(bench.store.settle([again])) == [Answer.DONE]
    assert bench.job(attempt.job_id) == before
    (current,) = bench.claim().attempts
    assert bench.run(bench.store.settle([again])) == [Answer.DONE]
    assert bench.succeed(current) is Answer.DONE


def test_an_old_token_settles_nothing(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.retry(attempt, 0)
    (current,) = bench.claim().attempts
    assert bench.succeed(attempt) is Answer.NOT_YOURS
    assert bench.succeed(unlike(current, claim_token=bench.ids.secret())) is Answer.NOT_YOURS
    assert bench.job(attempt.job_id).state is JobState.RUNNING
    assert bench.succeed(current) is Answer.DONE


def test_a_batch_of_every_shape_is_answered_row_by_row(bench: Bench) -> None:
    bench.dispatch(40)
    attempts = bench.claim().attempts
    bench.release(attempts[0])
    states: list[SettledState] = [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.RETRYING]
    settlements = [
        Settlement(
            attempt,
            Outcome(OutcomeKind.FAILED, code=f"code-{place % 5}", result=b"1" if place % 3 else None),
            states[place % 4],
            code=f"why-{place % 7}",
            delay_ms=place,
        )
        for place, attempt in enumerate(attempts)
    ]
    answers = bench.run(bench.store.settle(settlements))
    assert answers == [Answer.NOT_YOURS] + [Answer.DONE] * 39
    for settlement in settlements[1:]:
        job = bench.job(settlement.attempt.job_id)
        assert (job.state, job.code) == (settlement.state, settlement.code)
        assert [(record.attempt_id, record.code) for record in job.attempts] == [
            (settlement.attempt.attempt_id, settlement.outcome.code)
        ]
        assert job.result == (settlement.outcome.result if job.state is JobState.SUCCEEDED else None)


@pytest.mark.parametrize(
    "refused",
    [
        Outcome(OutcomeKind.FAILED, code="half \ud800"),
        Outcome(OutcomeKind.FAILED, error=ErrorDetail("builtins.ValueError", "half \udfff")),
        Outcome(OutcomeKind.FAILED, usage=Usage(wall_us=1 << 63)),
        Outcome(OutcomeKind.FAILED, usage=Usage(cpu_user_us=1 << 62, cpu_system_us=1 << 62)),
        Outcome(OutcomeKind.FAILED, begun_at_ms=1 << 80),
    ],
    ids=["code", "error", "usage", "sum", "time"],
)
def test_what_cannot_be_stored_refuses_the_whole_batch(bench: Bench, refused: Outcome) -> None:
    bench.dispatch(2)
    good, bad = bench.claim().attempts
    batch = [Settlement(good, SUCCESS, JobState.SUCCEEDED), Settlement(bad, refused, JobState.FAILED)]
    with pytest.raises(SettlementRejected) as rejected:
        bench.run(bench.store.settle(batch))
    assert rejected.value.code == "settlement_rejected"
    assert {bench.job(attempt.job_id).revision for attempt in (good, bad)} == {2}
    assert bench.run(bench.store.settle(batch[:1])) == [Answer.DONE]


def test_an_attempt_that_never_began_cannot_have_succeeded(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE)
    with pytest.raises(SettlementRejected, match="is reserved and cannot become succeeded"):
        bench.succeed(attempt)
    assert bench.settle(attempt, FAILURE, JobState.FAILED, code="payload_undecodable") is Answer.DONE
    job = bench.job(attempt.job_id)
    assert (job.state, job.executions, [record.number for record in job.attempts]) == (JobState.FAILED, 0, [1])


def test_a_late_settlement_counts_while_nobody_has_recovered_the_job(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.clock.advance_ms(LEASE_MS + 1)
    assert bench.succeed(attempt) is Answer.DONE
    assert bench.recover() == []


def test_a_settlement_loses_to_the_recovery_that_came_first(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.clock.advance_ms(LEASE_MS)
    assert len(bench.recover(code="lease_lost")) == 1
    assert bench.succeed(attempt) is Answer.NOT_YOURS
    assert bench.job(attempt.job_id).state is JobState.RETRYING


def test_usage_survives_in_full(bench: Bench) -> None:
    attempt = bench.claimed()
    values: dict[str, Any] = {name: place for place, name in enumerate(Usage.__struct_fields__)}
    usage = Usage(**{**values, "allocations_by": "counted"})
    bench.settle(attempt, msgspec.structs.replace(SUCCESS, usage=usage), JobState.SUCCEEDED)
    assert bench.job(attempt.job_id).attempts[0].usage == usage


def test_how_the_executor_died_and_what_it_left_survives_in_full(bench: Bench) -> None:
    bench.dispatch(3)
    first, second, third = bench.claim().attempts
    lines = "\u00fc \U0001f600 \n\t" + "x" * BLACK_BOX_MAX_BYTES
    outcomes = [
        Outcome(
            OutcomeKind.CRASHED,
            "executor_crashed",
            usage=USAGE,
            death=Death("signal", signal=9, phase="handle"),
            black_box=BlackBox(lines, "File 'a.py', line 3"),
        ),
        Outcome(OutcomeKind.CRASHED, "executor_crashed", death=Death("exit", status=0), black_box=BlackBox()),
        Outcome(OutcomeKind.TIMED_OUT, "execution_timed_out", death=Death("memory_limit", phase="close")),
    ]
    settlements = [
        Settlement(attempt, outcome, JobState.FAILED if attempt is third else JobState.RETRYING, "why", 0)
        for attempt, outcome in zip((first, second, third), outcomes, strict=True)
    ]
    assert bench.run(bench.store.settle(settlements)) == [Answer.DONE] * 3
    for attempt, outcome in zip((first, second, third), outcomes, strict=True):
        (record,) = bench.job(attempt.job_id).attempts
        assert (record.outcome, record.death, record.usage) == (outcome.kind, outcome.death, outcome.usage)
        assert record.black_box == outcome.black_box


def test_crashes_count_within_a_generation(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.retry(attempt, 0, Outcome(OutcomeKind.CRASHED, "memory_limit_exceeded"))
    assert bench.job(attempt.job_id).crashes == 1
    (second,) = bench.claim().attempts
    bench.retry(second, 0)
    assert bench.job(attempt.job_id).crashes == 1
    (third,) = bench.claim().attempts
    bench.succeed(third)
    assert bench.job(attempt.job_id).crashes == 0


@pytest.mark.parametrize("delay_ms", [0, 2_500, None])
def test_the_wait_that_was_drawn_is_kept_with_the_attempt(bench: Bench, delay_ms: int | None) -> None:
    attempt = bench.claimed()
    bench.retry(attempt, delay_ms)
    bench.clock.advance_ms(delay_ms or 0)
    (second,) = bench.claim().attempts
    bench.settle(second, FAILURE, JobState.FAILED, code="executions_exhausted", delay_ms=7)
    assert [record.delay_ms for record in bench.job(attempt.job_id).attempts] == [delay_ms, None]


@pytest.mark.parametrize(
    "refused",
    [
        Outcome(OutcomeKind.CRASHED, death=Death("signal", signal=9, phase="half \ud800")),
        Outcome(OutcomeKind.CRASHED, black_box=BlackBox("half \udfff")),
        Outcome(OutcomeKind.CRASHED, black_box=BlackBox("", "half \udfff")),
    ],
    ids=["phase", "lines", "stack"],
)
def test_a_black_box_that_cannot_be_stored_refuses_the_whole_batch(bench: Bench, refused: Outcome) -> None:
    bench.dispatch(2)
    good, bad = bench.claim().attempts
    batch = [Settlement(good, SUCCESS, JobState.SUCCEEDED), Settlement(bad, refused, JobState.FAILED)]
    with pytest.raises(SettlementRejected):
        bench.run(bench.store.settle(batch))
    assert {bench.job(attempt.job_id).state for attempt in (good, bad)} == {JobState.RUNNING}
