import pytest

from runwick.contracts.attempts import Expired
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState
from runwick.policy.recover import recover
from runwick.policy.settle import settle
from tests.ambient import FakeDice
from tests.attempts import an_attempt

RETRYABLE = [
    OutcomeKind.FAILED,
    OutcomeKind.TIMED_OUT,
    OutcomeKind.INTERRUPTED,
    OutcomeKind.CRASHED,
    OutcomeKind.ABANDONED,
]


def test_success_and_cancel_and_permanent_failure_end_the_job() -> None:
    attempt = an_attempt()
    assert settle(attempt, Outcome(OutcomeKind.SUCCEEDED), FakeDice()).state is JobState.SUCCEEDED
    assert settle(attempt, Outcome(OutcomeKind.CANCELLED, "user"), FakeDice()).state is JobState.CANCELLED
    permanent = settle(attempt, Outcome(OutcomeKind.FAILED_PERMANENTLY, "order_not_found"), FakeDice())
    assert (permanent.state, permanent.code, permanent.delay_ms) == (JobState.FAILED, "order_not_found", None)


@pytest.mark.parametrize("kind", RETRYABLE)
def test_a_retryable_end_is_retried_while_the_budget_lasts(kind: OutcomeKind) -> None:
    policy = JobPolicy(max_executions=2, max_crashes=99)
    first = settle(an_attempt(policy=policy, execution=1), Outcome(kind, "why"), FakeDice(0.0))
    last = settle(an_attempt(policy=policy, execution=2), Outcome(kind, "why"), FakeDice(0.0))
    assert first.state is JobState.RETRYING
    assert (last.state, last.code) == (JobState.FAILED, "executions_exhausted")


@pytest.mark.parametrize("kind", RETRYABLE)
def test_what_was_not_the_jobs_fault_need_not_wait(kind: OutcomeKind) -> None:
    settlement = settle(an_attempt(), Outcome(kind), FakeDice(0.0))
    waits = kind not in (OutcomeKind.INTERRUPTED, OutcomeKind.ABANDONED)
    assert settlement.delay_ms == (2_500 if waits else None)


def test_a_job_that_keeps_killing_its_executor_is_poison_although_executions_remain() -> None:
    policy = JobPolicy(max_executions=10, max_crashes=3)
    crash = Outcome(OutcomeKind.CRASHED, "executor_crashed")
    assert settle(an_attempt(policy=policy, execution=2, crashes=1), crash, FakeDice()).state is JobState.RETRYING
    third = settle(an_attempt(policy=policy, execution=3, crashes=2), crash, FakeDice())
    assert (third.state, third.code) == (JobState.FAILED, "poison_job")


def test_poison_wins_over_exhausted() -> None:
    policy = JobPolicy(max_executions=3, max_crashes=3)
    settlement = settle(an_attempt(policy=policy, execution=3, crashes=2), Outcome(OutcomeKind.CRASHED), FakeDice())
    assert settlement.code == "poison_job"


def test_a_delay_the_application_asked_for_is_used_as_given_up_to_the_maximum() -> None:
    policy = JobPolicy(retry_max_ms=60_000)
    asked = settle(an_attempt(policy=policy), Outcome(OutcomeKind.FAILED, retry_after_ms=12_345), FakeDice())
    capped = settle(an_attempt(policy=policy), Outcome(OutcomeKind.FAILED, retry_after_ms=999_999), FakeDice())
    assert (asked.delay_ms, capped.delay_ms) == (12_345, 60_000)


def test_recovery_charges_what_had_begun_and_retries_it_at_once() -> None:
    settlement = recover(Expired(an_attempt(execution=1), cancel_requested=False), FakeDice())
    assert (settlement.outcome.kind, settlement.state) == (OutcomeKind.ABANDONED, JobState.RETRYING)
    assert settlement.delay_ms is None


def test_recovery_of_the_last_execution_ends_the_job() -> None:
    expired = Expired(an_attempt(policy=JobPolicy(max_executions=1), execution=1), cancel_requested=False)
    assert recover(expired, FakeDice()).code == "executions_exhausted"


@pytest.mark.parametrize("begun", [True, False])
def test_a_cancel_that_was_asked_for_wins_over_a_retry(begun: bool) -> None:
    settlement = recover(Expired(an_attempt(begun=begun), cancel_requested=True), FakeDice())
    assert settlement.state is JobState.CANCELLED


def test_claims_that_never_begin_are_counted_and_end_the_job_at_last() -> None:
    policy = JobPolicy(max_unstarted=3)

    def after(unstarted: int) -> tuple[JobState, str | None, int | None]:
        attempt = an_attempt(begun=False, execution=0, unstarted=unstarted, policy=policy)
        settlement = recover(Expired(attempt, cancel_requested=False), FakeDice())
        return settlement.state, settlement.code, settlement.delay_ms

    assert after(0) == (JobState.RETRYING, "lease_lost", 1_000)
    assert after(1) == (JobState.RETRYING, "lease_lost", 2_000)
    assert after(2) == (JobState.FAILED, "reservation_abandonment_exhausted", None)
