"""Recover: what a dead worker held is closed as the policy says, charged only if it had begun."""

import pytest

from runwick.contracts.attempts import Expired
from runwick.contracts.errors import SettlementRejected
from runwick.contracts.outcomes import Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.policy.recover import recover
from tests.ambient import FakeDice
from tests.conformance.ground import APPLICATION, LARGE, LEASE_MS, SUCCESS, Bench, unlike


def test_a_begun_attempt_is_charged_and_leaves_its_row(bench: Bench) -> None:
    attempt = bench.claimed(metadata=b"{}", tenant="north")
    bench.clock.advance_ms(LEASE_MS)
    (expired,) = bench.recover(code="lease_lost")
    assert expired == Expired(unlike(attempt, payload=None), False)
    job = bench.job(attempt.job_id)
    assert (job.state, job.code, job.executions, job.revision) == (JobState.RETRYING, "lease_lost", 1, 3)
    (record,) = job.attempts
    assert (record.attempt_id, record.number, record.outcome) == (attempt.attempt_id, 1, "abandoned")
    assert (record.begun_at_ms, record.ended_at_ms, record.usage) == (None, bench.clock.now_ms(), None)


def test_one_that_never_began_is_charged_nothing_and_counts_for_the_guard(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE)
    bench.clock.advance_ms(LEASE_MS)
    (expired,) = bench.recover(code="lease_lost", delay_ms=1_000)
    assert (expired.attempt.begun, expired.attempt.unstarted, expired.attempt.payload) == (False, 0, None)
    job = bench.job(attempt.job_id)
    assert (job.state, job.code, job.executions, list(job.attempts)) == (JobState.PENDING, "lease_lost", 0, [])
    assert job.due_at_ms == bench.clock.now_ms() + 1_000
    bench.clock.advance_ms(1_000)
    (second,) = bench.claim().attempts
    assert (second.number, second.execution, second.unstarted) == (1, 0, 1)


def test_a_begin_resets_the_guard_and_a_release_does_not_move_it(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE)
    bench.clock.advance_ms(LEASE_MS)
    bench.recover()
    (second,) = bench.claim().attempts
    bench.release(second)
    (third,) = bench.claim().attempts
    assert (second.unstarted, third.unstarted) == (1, 1)
    begun = bench.run(bench.store.begin(third))
    assert begun is not None
    bench.retry(begun, 0)
    (fourth,) = bench.claim().attempts
    assert (fourth.unstarted, fourth.number, fourth.execution) == (0, 2, 1)
    bench.clock.advance_ms(LEASE_MS)
    bench.recover()
    assert bench.job(attempt.job_id).state is JobState.RETRYING


def test_the_guard_ends_a_job_that_never_begins(bench: Bench) -> None:
    (job_id,) = bench.dispatch(payload=LARGE)
    dice = FakeDice()
    for claims in range(1, 6):
        (attempt,) = bench.claim().attempts
        assert attempt.unstarted == claims - 1
        bench.clock.advance_ms(LEASE_MS)
        assert bench.run(bench.store.recover(APPLICATION, lambda expired: recover(expired, dice), 10)) == 1
        bench.clock.advance_ms(30_000)
    job = bench.job(job_id)
    assert (job.state, job.code) == (JobState.FAILED, "reservation_abandonment_exhausted")
    assert (job.executions, list(job.attempts)) == (0, [])


def test_the_budget_ends_a_job_that_kills_every_worker(bench: Bench) -> None:
    (job_id,) = bench.dispatch()
    for _ in range(3):
        assert len(bench.claim().attempts) == 1
        bench.clock.advance_ms(LEASE_MS)
        bench.run(bench.store.recover(APPLICATION, lambda expired: recover(expired, FakeDice()), 10))
    job = bench.job(job_id)
    assert (job.state, job.code, job.executions) == (JobState.FAILED, "executions_exhausted", 3)
    assert [record.number for record in job.attempts] == [1, 2, 3]


def test_recovered_jobs_need_not_wait(bench: Bench) -> None:
    attempt = bench.claimed()
    due_at_ms = bench.clock.now_ms()
    bench.clock.advance_ms(LEASE_MS)
    bench.recover()
    assert bench.job(attempt.job_id).due_at_ms == due_at_ms
    assert len(bench.claim().attempts) == 1


def test_the_longest_expired_come_first_and_no_more_than_asked_for(bench: Bench) -> None:
    attempts = []
    for _ in range(4):
        attempts.append(bench.claimed())
        bench.clock.advance_ms(10)
    bench.clock.advance_ms(LEASE_MS - 20)
    assert [expired.attempt.job for expired in bench.recover(limit=2)] == [attempts[0].job, attempts[1].job]
    assert [expired.attempt.job for expired in bench.recover(limit=2)] == [attempts[2].job]
    assert bench.recover() == []


def test_other_applications_and_healthy_leases_are_left_alone(bench: Bench) -> None:
    (theirs,) = bench.dispatch(application="bakery")
    bench.claim(application="bakery")
    bench.dispatch()
    bench.claim(lease_ms=2 * LEASE_MS)
    bench.clock.advance_ms(LEASE_MS)
    assert bench.recover() == []
    assert bench.job(theirs, "bakery").state is JobState.RUNNING


def test_an_old_attempt_writes_nothing_after_its_recovery(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.clock.advance_ms(LEASE_MS)
    bench.recover(JobState.FAILED, code="executions_exhausted")
    before = bench.job(attempt.job_id)
    assert bench.release(attempt) != ["done"]
    assert bench.retry(attempt, 0) != "done"
    assert bench.job(attempt.job_id) == before


def test_a_decision_that_the_state_does_not_allow_changes_nothing(bench: Bench) -> None:
    bench.dispatch(2, payload=LARGE)
    first, second = bench.claim().attempts
    bench.clock.advance_ms(LEASE_MS)

    def decide(expired: Expired) -> Settlement:
        wrong = expired.attempt.job == second.job
        outcome = SUCCESS if wrong else Outcome(OutcomeKind.ABANDONED)
        return Settlement(expired.attempt, outcome, JobState.SUCCEEDED if wrong else JobState.RETRYING)

    with pytest.raises(SettlementRejected):
        bench.run(bench.store.recover(APPLICATION, decide, 10))
    assert {bench.job(attempt.job_id).state for attempt in (first, second)} == {JobState.RESERVED}
