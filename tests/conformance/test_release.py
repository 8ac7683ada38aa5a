"""Release: what never reached its handler goes back as if it had not been claimed."""

import pytest

from runwick.contracts.outcomes import Answer
from runwick.contracts.states import JobState
from tests.conformance.ground import LARGE, Bench, ids_of, unlike


@pytest.mark.parametrize("payload", [b"{}", LARGE], ids=["begun", "reserved"])
def test_charge_and_number_are_taken_back_and_no_row_is_left(bench: Bench, payload: bytes) -> None:
    attempt = bench.claimed(payload=payload)
    before = bench.job(attempt.job_id)
    assert bench.release(attempt) == [Answer.DONE]
    job = bench.job(attempt.job_id)
    assert (job.state, job.executions, job.revision) == (JobState.PENDING, 0, before.revision + 1)
    assert list(job.attempts) == []
    (again,) = bench.claim().attempts
    assert (again.number, again.unstarted) == (1, 0)


def test_a_released_job_stands_where_it_stood(bench: Bench) -> None:
    first, second, third = bench.dispatch(3)
    due_at_ms = bench.job(first).due_at_ms
    attempts = bench.claim(free=2).attempts
    bench.clock.advance_ms(5_000)
    bench.release(*attempts)
    assert bench.job(first).due_at_ms == due_at_ms
    assert ids_of(bench.claim().attempts) == [first, second, third]


def test_between_two_executions_it_goes_back_to_retrying(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.retry(attempt, 0)
    (second,) = bench.claim().attempts
    bench.release(second)
    job = bench.job(attempt.job_id)
    assert (job.state, job.code, job.executions) == (JobState.RETRYING, "handler_failed", 1)
    assert [record.number for record in job.attempts] == [1]


def test_sent_twice_the_second_is_not_yours(bench: Bench) -> None:
    attempt = bench.claimed()
    assert bench.release(attempt, attempt) == [Answer.DONE, Answer.NOT_YOURS]
    assert bench.release(attempt) == [Answer.NOT_YOURS]
    assert bench.job(attempt.job_id).revision == 3


def test_an_old_token_changes_nothing(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.release(attempt)
    (current,) = bench.claim().attempts
    other = bench.claimed()
    stranger = unlike(other, claim_token=bench.ids.secret())
    assert bench.release(attempt, stranger, other) == [Answer.NOT_YOURS, Answer.NOT_YOURS, Answer.DONE]
    assert bench.job(current.job_id).state is JobState.RUNNING
