from collections.abc import Callable

import pytest

from runwick.contracts.ambient import Dice
from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import IfCancelled, Outcome, OutcomeKind, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState
from runwick.policy.recover import recover, recover_from_dead
from runwick.policy.settle import settle
from tests.ambient import FakeDice
from tests.attempts import an_attempt

Recover = Callable[[Attempt, Dice], Settlement]

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


@pytest.mark.parametrize("kind", RETRYABLE)
@pytest.mark.parametrize("execution", [1, 3], ids=["would be retried", "is exhausted"])
def test_a_cancel_wins_over_a_retry_and_over_an_exhausted_budget(kind: OutcomeKind, execution: int) -> None:
    """F050: whether it stands is known under the row's lock, so both ends are carried."""
    settlement = settle(an_attempt(execution=execution), Outcome(kind, "why"), FakeDice())
    assert settlement.if_cancelled == IfCancelled(kind, "why", "cancel_requested")


def test_a_cancel_wins_over_poison() -> None:
    settlement = settle(
        an_attempt(execution=3, crashes=2), Outcome(OutcomeKind.CRASHED, "executor_crashed"), FakeDice()
    )
    assert settlement.code == "poison_job"
    assert settlement.if_cancelled == IfCancelled(OutcomeKind.CRASHED, "executor_crashed")


@pytest.mark.parametrize("kind", [OutcomeKind.SUCCEEDED, OutcomeKind.FAILED_PERMANENTLY, OutcomeKind.CANCELLED])
def test_what_the_handler_ended_for_good_stands_whatever_was_asked(kind: OutcomeKind) -> None:
    assert settle(an_attempt(execution=3), Outcome(kind, "why"), FakeDice()).if_cancelled is None


def test_a_hard_memory_stop_is_a_crash_like_any_other() -> None:
    outcome = Outcome(OutcomeKind.CRASHED, "memory_limit_exceeded")
    first = settle(an_attempt(), outcome, FakeDice(1.0))
    assert (first.state, first.code, first.delay_ms) == (JobState.RETRYING, "memory_limit_exceeded", 5_000)
    assert settle(an_attempt(execution=2, crashes=2), outcome, FakeDice()).code == "poison_job"


BOTH_WAYS = pytest.mark.parametrize(("decide", "code"), [(recover, "lease_lost"), (recover_from_dead, "worker_died")])
"""The two ways in which an attempt is left by its worker."""


@BOTH_WAYS
def test_recovery_charges_what_had_begun_and_retries_it_at_once(decide: Recover, code: str) -> None:
    settlement = decide(an_attempt(execution=1), FakeDice())
    assert settlement.outcome == Outcome(OutcomeKind.ABANDONED, code)
    assert (settlement.state, settlement.code, settlement.delay_ms) == (JobState.RETRYING, code, None)


@BOTH_WAYS
def test_recovery_of_the_last_execution_ends_the_job(decide: Recover, code: str) -> None:
    settlement = decide(an_attempt(policy=JobPolicy(max_executions=1), execution=1), FakeDice())
    assert (settlement.outcome.code, settlement.code) == (code, "executions_exhausted")


@BOTH_WAYS
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("last", [True, False])
def test_a_cancel_wins_over_every_end_that_recovery_decides(
    decide: Recover, code: str, begun: bool, last: bool
) -> None:
    policy = JobPolicy(max_executions=2, max_unstarted=2)
    attempt = an_attempt(begun=begun, execution=1 + last, unstarted=int(last), policy=policy)
    settlement = decide(attempt, FakeDice())
    assert settlement.state is (JobState.FAILED if last else JobState.RETRYING)
    assert settlement.if_cancelled == IfCancelled(OutcomeKind.CANCELLED, "cancel_requested", "cancel_requested")


@BOTH_WAYS
def test_claims_that_never_begin_are_counted_and_end_the_job_at_last(decide: Recover, code: str) -> None:
    policy = JobPolicy(max_unstarted=3)

    def after(unstarted: int) -> tuple[JobState, str | None, int | None]:
        attempt = an_attempt(begun=False, execution=0, unstarted=unstarted, policy=policy)
        settlement = decide(attempt, FakeDice())
        return settlement.state, settlement.code, settlement.delay_ms

    assert after(0) == (JobState.RETRYING, code, 1_000)
    assert after(1) == (JobState.RETRYING, code, 2_000)
    assert after(2) == (JobState.FAILED, "reservation_abandonment_exhausted", None)


def test_the_delay_of_claims_that_never_begin_doubles_up_to_its_maximum() -> None:
    """F052: after a restart of everything, no job ends early for claims that never began."""
    policy = JobPolicy(max_unstarted=100)
    delays = [
        recover(an_attempt(begun=False, execution=0, unstarted=unstarted, policy=policy), FakeDice(0.1)).delay_ms
        for unstarted in range(7)
    ]
    assert delays == [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]
