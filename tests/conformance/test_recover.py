"""Recover: what a dead worker held is closed as the policy says, charged only if it had begun."""

import threading

import pytest

from runwick.contracts.attempts import Attempt
from runwick.contracts.errors import SettlementRejected
from runwick.contracts.outcomes import Answer, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.policy.recover import recover, recover_from_dead
from runwick.policy.settle import settle
from tests.ambient import FakeDice
from tests.conformance.ground import APPLICATION, LARGE, LEASE_MS, LONE, SUCCESS, Bench, held, unlike


def test_a_begun_attempt_is_charged_and_leaves_its_row(bench: Bench) -> None:
    attempt = bench.claimed(metadata=b"{}", tenant="north")
    bench.clock.advance_ms(LEASE_MS)
    (expired,) = bench.recover(code="lease_lost")
    assert expired == unlike(attempt, payload=None)
    job = bench.job(attempt.job_id)
    assert (job.state, job.code, job.executions, job.revision) == (JobState.RETRYING, "lease_lost", 1, 3)
    (record,) = job.attempts
    assert (record.attempt_id, record.number, record.outcome) == (attempt.attempt_id, 1, "abandoned")
    assert (record.begun_at_ms, record.ended_at_ms, record.usage) == (None, bench.clock.now_ms(), None)


def test_one_that_never_began_is_charged_nothing_and_counts_for_the_guard(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE)
    bench.clock.advance_ms(LEASE_MS)
    (expired,) = bench.recover(code="lease_lost", delay_ms=1_000)
    assert (expired.begun, expired.unstarted, expired.payload) == (False, 0, None)
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
    begun = bench.begin(third).attempt
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
    assert [expired.job for expired in bench.recover(limit=2)] == [attempts[0].job, attempts[1].job]
    assert [expired.job for expired in bench.recover(limit=2)] == [attempts[2].job]
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

    def decide(expired: Attempt) -> Settlement:
        wrong = expired.job == second.job
        outcome = SUCCESS if wrong else Outcome(OutcomeKind.ABANDONED)
        return Settlement(expired, outcome, JobState.SUCCEEDED if wrong else JobState.RETRYING)

    with pytest.raises(SettlementRejected):
        bench.run(bench.store.recover(APPLICATION, decide, 10))
    assert {bench.job(attempt.job_id).state for attempt in (first, second)} == {JobState.RESERVED}


def test_a_lease_that_holds_is_left_alone_whether_it_has_begun_or_not(bench: Bench) -> None:
    """F038."""
    bench.dispatch(payload=LARGE)
    bench.dispatch()
    reserved, running = bench.claim().attempts
    bench.clock.advance_ms(LEASE_MS - 1)
    before = [bench.job(attempt.job_id) for attempt in (reserved, running)]
    assert bench.recover() == bench.recover(worker=bench.ids.ordered()) == []
    assert [bench.job(attempt.job_id) for attempt in (reserved, running)] == before
    assert bench.begin(reserved).attempt is not None
    assert bench.succeed(running) is Answer.DONE


@pytest.mark.parametrize("offset_ms", range(-5, 6))
@pytest.mark.parametrize("finishes_first", [True, False])
def test_at_the_end_of_a_lease_the_finish_or_the_recovery_counts_and_never_both(
    bench: Bench, offset_ms: int, finishes_first: bool
) -> None:
    """F055."""
    attempt = bench.claimed(policy=LONE)
    bench.clock.advance_ms(LEASE_MS + offset_ms)
    settlement = settle(attempt, SUCCESS, FakeDice())
    answers = bench.run(bench.store.settle([settlement])) if finishes_first else []
    recovered = bench.run(bench.store.recover(APPLICATION, lambda attempt: recover(attempt, FakeDice()), 10))
    answers = answers or bench.run(bench.store.settle([settlement]))
    assert (answers, recovered) in [([Answer.DONE], 0), ([Answer.NOT_YOURS], 1)]
    assert recovered == (not finishes_first and offset_ms >= 0)
    job = bench.job(attempt.job_id)
    assert (job.state, job.code, job.executions) == (
        (JobState.FAILED, "executions_exhausted", 1) if recovered else (JobState.SUCCEEDED, None, 1)
    )
    assert len(job.attempts) == 1
    assert bench.claim().attempts == []


def test_a_worker_that_finishes_while_recovery_decides_is_not_overwritten(bench: Bench) -> None:
    """F049: whoever is second changes nothing."""
    attempt = bench.claimed(policy=LONE)
    bench.clock.advance_ms(LEASE_MS)
    other = bench.another()
    settlement = settle(attempt, SUCCESS, FakeDice())
    answers: list[Answer] = []

    def finish() -> None:
        answers.append(*other.run(other.settle([settlement])))

    meanwhile = threading.Thread(target=finish)

    def decide(expired: Attempt) -> Settlement:
        if meanwhile.ident is None:
            meanwhile.start()
            # A store that decides under its lock lets nobody in before the decision is made.
            meanwhile.join(0.2)
        return recover(expired, FakeDice())

    try:
        recovered = bench.run(bench.store.recover(APPLICATION, decide, 10))
        meanwhile.join()
    finally:
        other.close()
    state = bench.job(attempt.job_id).state
    finished = (0, [Answer.DONE], JobState.SUCCEEDED)
    assert (recovered, answers, state) in [finished, (1, [Answer.NOT_YOURS], JobState.FAILED)]
    assert len(bench.job(attempt.job_id).attempts) == 1


def from_dead(bench: Bench, worker: bytes, limit: int = 100) -> int:
    dice = FakeDice()
    return bench.run(
        bench.store.recover(APPLICATION, lambda attempt: recover_from_dead(attempt, dice), limit, worker=worker)
    )


def test_what_a_dead_worker_held_need_not_wait_for_its_leases(bench: Bench) -> None:
    dead = bench.worker
    bench.dispatch()
    bench.dispatch(payload=LARGE)
    running, reserved = bench.claim().attempts
    bench.worker = bench.ids.ordered()
    bench.dispatch()
    (healthy,) = bench.claim().attempts
    bench.worker = dead
    mark = bench.marked(running)
    bench.clock.advance_ms(700)
    assert from_dead(bench, dead) == 2
    job = bench.job(running.job_id)
    assert (job.state, job.code, job.executions) == (JobState.RETRYING, "worker_died", 1)
    assert job.due_at_ms == bench.clock.now_ms() - 700
    (record,) = job.attempts
    assert (record.outcome, record.code, record.begun_at_ms) == ("abandoned", "worker_died", mark.begun_at_ms)
    job = bench.job(reserved.job_id)
    assert (job.state, job.code, job.executions, list(job.attempts)) == (JobState.PENDING, "worker_died", 0, [])
    assert job.due_at_ms == bench.clock.now_ms() + 1_000
    assert bench.job(healthy.job_id).state is JobState.RUNNING
    assert from_dead(bench, dead) == 0
    bench.clock.advance_ms(1_000)
    attempts = {attempt.job_id: attempt for attempt in bench.claim().attempts}
    assert set(attempts) == {running.job_id, reserved.job_id}
    assert (attempts[running.job_id].number, attempts[reserved.job_id].unstarted) == (2, 1)


def test_what_comes_late_from_a_dead_worker_changes_nothing(bench: Bench) -> None:
    bench.dispatch(2, policy=LONE)
    attempt, finished = bench.claim().attempts
    assert bench.succeed(finished) is Answer.DONE
    assert from_dead(bench, bench.worker) == 1
    before = bench.job(attempt.job_id)
    assert (before.state, before.code) == (JobState.FAILED, "executions_exhausted")
    assert bench.succeed(attempt) is Answer.NOT_YOURS
    assert bench.release(attempt) == [Answer.NOT_YOURS]
    assert bench.renew(attempt).lost == {attempt.job}
    assert bench.job(attempt.job_id) == before


def test_its_leases_that_have_run_out_are_closed_too_and_those_of_others_are_not(bench: Bench) -> None:
    bench.claimed()
    owner, bench.worker = bench.worker, bench.ids.ordered()
    theirs = bench.claimed()
    bench.clock.advance_ms(LEASE_MS)
    assert from_dead(bench, owner) == 1
    assert bench.job(theirs.job_id).state is JobState.RUNNING
    assert [attempt.job for attempt in bench.recover()] == [theirs.job]


def test_its_presence_ends_with_it(bench: Bench) -> None:
    bench.renew()
    bench.clock.advance_ms(5)
    assert from_dead(bench, bench.worker) == 0
    (record,) = bench.run(bench.store.workers(APPLICATION))
    assert (record.seen_at_ms, record.departed_at_ms) == (bench.clock.now_ms() - 5, bench.clock.now_ms())
    assert bench.administration.status().applications[0].workers == 0
    bench.worker = bench.ids.ordered()
    bench.renew()
    assert bench.administration.status().applications[0].workers == 1


def test_what_was_cancelled_ends_with_its_dead_worker(bench: Bench) -> None:
    bench.dispatch()
    bench.dispatch(payload=LARGE)
    attempts = bench.claim().attempts
    bench.cancel(*(attempt.job_id for attempt in attempts))
    assert from_dead(bench, bench.worker) == 2
    assert {bench.job(attempt.job_id).state for attempt in attempts} == {JobState.CANCELLED}


def test_of_many_no_more_are_closed_than_asked_for(bench: Bench) -> None:
    bench.dispatch(5)
    attempts = bench.claim().attempts
    assert [from_dead(bench, bench.worker, limit=2) for _ in range(4)] == [2, 2, 1, 0]
    assert bench.renew(*attempts).lost == {item.job for item in held(*attempts)}
