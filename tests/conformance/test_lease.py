"""Leases: renewed while they hold, never afterwards; one worker at a time runs the recovery pass."""

from runwick.contracts.states import JobState
from tests.conformance.ground import LEASE_MS, RECOVERY_MS, Bench, unlike


def test_a_renewed_lease_lasts_from_the_renewal_on(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.clock.advance_ms(LEASE_MS - 1)
    beat = bench.renew(attempt)
    assert (beat.lost, beat.locked) == (frozenset(), frozenset())
    bench.clock.advance_ms(LEASE_MS - 1)
    assert bench.recover() == []
    bench.clock.advance_ms(1)
    assert len(bench.recover()) == 1


def test_a_renewal_is_no_change_of_the_job(bench: Bench) -> None:
    attempt = bench.claimed()
    before = bench.job(attempt.job_id)
    bench.renew(attempt)
    assert bench.job(attempt.job_id) == before


def test_an_expired_lease_is_lost_although_nobody_took_the_job(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.clock.advance_ms(LEASE_MS)
    assert bench.renew(attempt).lost == {attempt.job}
    assert len(bench.recover()) == 1


def test_each_lease_is_answered_for_itself(bench: Bench) -> None:
    bench.dispatch(4)
    kept, settled, released, stolen = bench.claim().attempts
    bench.succeed(settled)
    bench.release(released)
    stranger = unlike(stolen, claim_token=bench.ids.secret())
    beat = bench.renew(kept, settled, released, stranger)
    assert beat.lost == {settled.job, released.job, stranger.job}
    bench.clock.advance_ms(LEASE_MS)
    assert {expired.job for expired in bench.recover()} == {kept.job, stolen.job}


def test_a_job_that_was_claimed_again_is_lost_to_its_first_holder(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.release(attempt)
    (current,) = bench.claim().attempts
    assert bench.renew(attempt).lost == {attempt.job}
    assert bench.renew(current).lost == frozenset()
    assert bench.job(current.job_id).state is JobState.RUNNING


def test_one_worker_per_interval_runs_the_recovery_pass(bench: Bench) -> None:
    assert [bench.renew().recovery_due for _ in range(3)] == [True, False, False]
    bench.clock.advance_ms(RECOVERY_MS - 1)
    assert not bench.renew().recovery_due
    bench.clock.advance_ms(1)
    assert [bench.renew().recovery_due for _ in range(2)] == [True, False]


def test_each_application_has_its_own_pass(bench: Bench) -> None:
    assert bench.renew().recovery_due
    assert bench.renew(application="bakery").recovery_due


def test_a_clock_that_was_set_back_does_not_stop_the_pass(bench: Bench) -> None:
    assert bench.renew().recovery_due
    bench.clock.advance_ms(-3_600_000)
    assert [bench.renew().recovery_due for _ in range(2)] == [True, False]


def test_a_worker_may_leave_whether_it_was_seen_or_not(bench: Bench) -> None:
    bench.run(bench.store.depart(bench.presence()))
    bench.renew()
    bench.run(bench.store.depart(bench.presence()))
    assert not bench.renew().recovery_due
