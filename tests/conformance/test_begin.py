"""Begin: what a claim could only reserve is authorised, charged and given its payload, once."""

from runwick.contracts.attempts import Begun
from runwick.contracts.states import JobState
from tests.conformance.ground import LARGE, LEASE_MS, Bench, unlike


def test_a_large_payload_is_only_reserved_and_costs_nothing(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE)
    assert not attempt.begun
    assert (attempt.payload, attempt.payload_bytes) == (None, len(LARGE))
    assert (attempt.number, attempt.execution) == (1, 0)
    job = bench.job(attempt.job_id)
    assert (job.state, job.executions, job.revision) == (JobState.RESERVED, 0, 2)


def test_small_and_large_payloads_come_in_one_claim(bench: Bench) -> None:
    job_ids = [*bench.dispatch(), *bench.dispatch(payload=LARGE), *bench.dispatch()]
    attempts = bench.claim().attempts
    assert [(attempt.job_id, attempt.begun) for attempt in attempts] == list(
        zip(job_ids, [True, False, True], strict=True)
    )


def test_begin_charges_and_reads_the_payload(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE)
    begun = bench.begin(attempt)
    assert begun == Begun(unlike(attempt, begun=True, execution=1, payload=LARGE))
    job = bench.job(attempt.job_id)
    assert (job.state, job.executions, job.revision) == (JobState.RUNNING, 1, 3)


def test_begin_sent_again_charges_nothing_more(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE)
    begun = bench.begin(attempt)
    assert bench.begin(attempt) == begun
    assert (bench.job(attempt.job_id).executions, bench.job(attempt.job_id).revision) == (1, 3)


def test_begin_with_another_token_changes_nothing(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE)
    stranger = unlike(attempt, claim_token=bench.ids.secret())
    assert bench.begin(stranger) == Begun(None)
    assert bench.job(attempt.job_id).state is JobState.RESERVED


def test_nothing_begins_on_an_expired_lease(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE)
    bench.clock.advance_ms(LEASE_MS)
    assert bench.begin(attempt) == Begun(None)
    assert bench.job(attempt.job_id).executions == 0


def test_nothing_begins_that_was_given_back(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE)
    bench.release(attempt)
    assert bench.begin(attempt) == Begun(None)
    assert bench.job(attempt.job_id).state is JobState.PENDING
