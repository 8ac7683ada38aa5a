"""Expiry: a job that has not begun by then fails, by the store's clock, whether or not anybody serves it."""

from typing import Any

import pytest

from runwick.contracts.activity import Mark
from runwick.contracts.attempts import Begun, Kind, Lane
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import JobRecord
from runwick.policy.recover import recover
from tests.ambient import FakeDice
from tests.conformance.ground import APPLICATION, LARGE, LEASE_MS, Bench

FAR_MS = 3_600_000


def expire(bench: Bench, limit: int = 100, application: str = APPLICATION) -> int:
    return bench.run(bench.store.expire(application, limit))


def assert_expired(job: JobRecord) -> None:
    assert (job.state, job.code, job.due_at_ms, job.expires_at_ms) == (JobState.FAILED, "expired", None, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"lane": Lane("nobody", Priority.LOW)},
        {"kind": Kind("reports.build", 9)},
        {"delay_ms": FAR_MS},
    ],
    ids=["no worker for the lane", "no worker for the kind", "due later"],
)
def test_what_nobody_would_claim_ends_all_the_same(bench: Bench, changes: dict[str, Any]) -> None:
    (job_id,) = bench.dispatch(expires_in_ms=1_000, **changes)
    assert bench.job(job_id).expires_at_ms == bench.clock.now_ms() + 1_000
    bench.clock.advance_ms(999)
    assert expire(bench) == 0
    bench.clock.advance_ms(1)
    assert expire(bench) == 1
    job = bench.job(job_id)
    assert_expired(job)
    assert (job.revision, job.ended_at_ms, list(job.attempts)) == (2, bench.clock.now_ms(), [])
    assert expire(bench) == 0


def test_the_longest_expired_end_first_and_no_more_than_asked_for(bench: Bench) -> None:
    late, early, middle = (bench.dispatch(expires_in_ms=ms)[0] for ms in (30, 10, 20))
    (kept,) = bench.dispatch()
    bench.clock.advance_ms(30)
    for job_id, state in ((early, JobState.PENDING), (middle, JobState.PENDING)):
        assert bench.job(job_id).state is state
    assert expire(bench, limit=2) == 2
    assert [bench.job(job_id).state for job_id in (early, middle, late)] == [
        JobState.FAILED,
        JobState.FAILED,
        JobState.PENDING,
    ]
    assert expire(bench, limit=2) == 1
    assert bench.job(kept).state is JobState.PENDING


def test_applications_expire_for_themselves(bench: Bench) -> None:
    (theirs,) = bench.dispatch(application="bakery", expires_in_ms=10)
    bench.clock.advance_ms(10)
    assert expire(bench) == 0
    assert expire(bench, application="bakery") == 1
    assert_expired(bench.job(theirs, "bakery"))


def test_what_was_begun_in_time_goes_on(bench: Bench) -> None:
    running = bench.claimed(expires_in_ms=1_000)
    bench.clock.advance_ms(1_000)
    assert expire(bench) == 0
    assert bench.succeed(running) == "done"
    assert bench.job(running.job_id).state is JobState.SUCCEEDED


def test_what_is_only_reserved_may_begin_before_its_expiry_alone(bench: Bench) -> None:
    bench.dispatch(2, payload=LARGE, expires_in_ms=1_000)
    first, second = bench.claim().attempts
    bench.clock.advance_ms(999)
    assert bench.begin(first).attempt is not None
    bench.clock.advance_ms(1)
    assert expire(bench) == 0
    assert bench.begin(first).attempt is not None
    assert bench.begin(second) == Begun(None, "expired")
    job = bench.job(second.job_id)
    assert_expired(job)
    assert (job.executions, job.revision, list(job.attempts)) == (0, 3, [])
    assert bench.begin(second) == Begun(None)
    assert bench.renew(second).lost == {second.job}


def test_a_cancel_is_the_reason_even_after_its_expiry(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE, expires_in_ms=1_000)
    bench.cancel(attempt.job_id)
    bench.clock.advance_ms(1_000)
    assert bench.begin(attempt) == Begun(None, "cancel_requested")
    assert bench.job(attempt.job_id).state is JobState.CANCELLED


def test_what_is_given_back_too_late_ends_with_the_next_pass(bench: Bench) -> None:
    attempt = bench.claimed(expires_in_ms=1_000)
    bench.clock.advance_ms(1_000)
    bench.release(attempt)
    assert bench.job(attempt.job_id).state is JobState.PENDING
    assert expire(bench) == 1
    assert_expired(bench.job(attempt.job_id))


def test_a_wait_longer_than_its_life_does_not_expire_it(bench: Bench) -> None:
    attempt = bench.claimed(expires_in_ms=1_000)
    bench.clock.advance_ms(400)
    bench.retry(attempt, 60_000)
    assert bench.job(attempt.job_id).expires_at_ms == bench.clock.now_ms() + 61_000
    bench.clock.advance_ms(60_999)
    assert expire(bench) == 0
    bench.clock.advance_ms(1)
    assert expire(bench) == 1
    assert [record.outcome for record in bench.job(attempt.job_id).attempts] == ["failed"]


def test_the_wait_after_a_claim_that_never_began_does_not_expire_it(bench: Bench) -> None:
    lifetime_ms = LEASE_MS + 100
    attempt = bench.claimed(payload=LARGE, expires_in_ms=lifetime_ms)
    bench.clock.advance_ms(LEASE_MS)
    bench.run(bench.store.recover(APPLICATION, lambda attempt: recover(attempt, FakeDice()), 10))
    job = bench.job(attempt.job_id)
    assert (job.state, job.due_at_ms) == (JobState.PENDING, bench.clock.now_ms() + 1_000)
    assert job.expires_at_ms == bench.clock.now_ms() + 1_000 + lifetime_ms
    bench.clock.advance_ms(1_000)
    assert expire(bench) == 0
    assert len(bench.claim().attempts) == 1


def test_a_run_that_was_cut_short_gives_it_its_life_again(bench: Bench) -> None:
    attempt = bench.claimed(expires_in_ms=1_000)
    bench.clock.advance_ms(1_500)
    bench.retry(attempt, None)
    assert bench.job(attempt.job_id).expires_at_ms == bench.clock.now_ms() + 1_000
    assert expire(bench) == 0
    assert len(bench.claim().attempts) == 1


@pytest.mark.parametrize("skew_ms", [-FAR_MS, FAR_MS])
def test_the_clock_of_a_worker_has_no_say(bench: Bench, skew_ms: int) -> None:
    attempt = bench.claimed(expires_in_ms=1_000)
    bench.renew(marks=[Mark(attempt.job, attempt.claim_token, bench.clock.now_ms() + skew_ms)])
    bench.clock.advance_ms(500)
    bench.retry(attempt, 100, Outcome(OutcomeKind.FAILED, "why", begun_at_ms=bench.clock.now_ms() + skew_ms))
    assert bench.job(attempt.job_id).expires_at_ms == bench.clock.now_ms() + 1_100
    bench.clock.advance_ms(1_099)
    assert expire(bench) == 0
    bench.clock.advance_ms(1)
    assert expire(bench) == 1


def test_the_time_zero_is_a_time(bench: Bench) -> None:
    (job_id,) = bench.dispatch(expires_at_ms=0)
    assert bench.claim().attempts == []
    assert (bench.job(job_id).state, bench.job(job_id).code) == (JobState.FAILED, "expired")
