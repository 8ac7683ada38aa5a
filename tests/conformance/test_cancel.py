"""Cancel: a waiting job ends, a held one is asked to stop, and what was asked for is never forgotten."""

import threading
from collections.abc import Callable

import pytest

from runwick.contracts.attempts import Attempt, Begun
from runwick.contracts.controls import ControlAction, ControlAnswer
from runwick.contracts.outcomes import Answer, IfCancelled, Outcome, OutcomeKind, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState
from runwick.contracts.stores import JobRecord
from runwick.policy.recover import recover
from runwick.policy.settle import settle
from tests.ambient import FakeDice
from tests.conformance.ground import APPLICATION, FAILURE, LARGE, LEASE_MS, LONE, SUCCESS, Bench, held, unlike

DICE = FakeDice()
BEGUN_OR_RESERVED = pytest.mark.parametrize("payload", [b"{}", LARGE], ids=["begun", "reserved"])


def asked(bench: Bench, payload: bytes = b"{}", **changes: object) -> Attempt:
    """An attempt whose job somebody cancelled while it was held."""
    attempt = bench.claimed(payload=payload, **changes)
    (answer,) = bench.cancel(attempt.job_id)
    assert (answer.code, answer.cancel_requested) == (None, True)
    return attempt


def recover_all(bench: Bench) -> int:
    return bench.run(bench.store.recover(APPLICATION, lambda attempt: recover(attempt, DICE), 100))


def ended(job: JobRecord) -> tuple[JobState, str | None, list[tuple[str, str | None]]]:
    """Where a job stands and how its attempts ended."""
    return job.state, job.code, [(attempt.outcome, attempt.code) for attempt in job.attempts]


@pytest.mark.parametrize("delay_ms", [None, 60_000], ids=["due", "due later"])
def test_a_waiting_job_ends_at_once_and_never_begins(bench: Bench, delay_ms: int | None) -> None:
    (job_id,) = bench.dispatch(delay_ms=delay_ms)
    bench.clock.advance_ms(5)
    assert bench.cancel(job_id) == [ControlAnswer(job_id, None, JobState.CANCELLED, 1, 2)]
    job = bench.job(job_id)
    assert ended(job) == (JobState.CANCELLED, "cancel_requested", [])
    assert (job.revision, job.due_at_ms, job.ended_at_ms) == (2, None, bench.clock.now_ms())
    assert job.cancel_requested_at_ms == bench.clock.now_ms()
    bench.clock.advance_ms(60_000)
    assert bench.claim().attempts == []


def test_a_job_between_two_executions_ends_at_once(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.retry(attempt, 5_000)
    (answer,) = bench.cancel(attempt.job_id)
    assert (answer.state, answer.revision) == (JobState.CANCELLED, 4)
    assert ended(bench.job(attempt.job_id)) == (
        JobState.CANCELLED,
        "cancel_requested",
        [("failed", "handler_failed")],
    )


@BEGUN_OR_RESERVED
def test_a_held_job_is_asked_and_stays_as_it_is(bench: Bench, payload: bytes) -> None:
    attempt = bench.claimed(payload=payload)
    before = bench.job(attempt.job_id)
    (answer,) = bench.cancel(attempt.job_id)
    assert answer == ControlAnswer(attempt.job_id, None, before.state, 1, 3, cancel_requested=True)
    job = bench.job(attempt.job_id)
    assert (job.state, job.revision, job.cancel_requested_at_ms) == (before.state, 3, bench.clock.now_ms())


@BEGUN_OR_RESERVED
def test_what_was_cancelled_cannot_be_cancelled_again(bench: Bench, payload: bytes) -> None:
    attempt = asked(bench, payload)
    (again,) = bench.cancel(attempt.job_id)
    assert (again.code, again.revision, again.cancel_requested) == ("invalid_state", 3, True)
    bench.release(attempt)
    (ended,) = bench.cancel(attempt.job_id)
    assert ended == ControlAnswer(attempt.job_id, "invalid_state", JobState.CANCELLED, 1, 4)


def test_its_worker_hears_of_it_with_every_renewal_until_the_attempt_has_ended(bench: Bench) -> None:
    attempt, other = asked(bench), bench.claimed()
    owner = bench.worker
    bench.worker = bench.ids.ordered()
    assert list(bench.renew().cancels) == []
    bench.worker = owner
    for _ in range(2):
        assert list(bench.renew(attempt, other).cancels) == held(attempt)
    bench.succeed(attempt)
    assert list(bench.renew(other).cancels) == []


def test_a_renewal_names_every_cancelled_attempt(bench: Bench) -> None:
    """However many do not end, they keep no other from being heard of."""
    job_ids = bench.dispatch(130)
    attempts = bench.claim().attempts + bench.claim().attempts
    bench.cancel(*job_ids[:100])
    bench.cancel(*job_ids[100:])
    for _ in range(2):
        assert sorted(bench.renew().cancels, key=repr) == sorted(held(*attempts), key=repr)


def test_a_cancel_wakes_the_worker_that_holds_the_job(bench: Bench) -> None:
    attempt = bench.claimed()
    woken = threading.Event()
    stop = bench.store.wake_on_requests(bench.worker, woken.set)
    try:
        bench.cancel(attempt.job_id)
        assert woken.wait(10)
    finally:
        stop()


POISONED = JobPolicy(max_crashes=1)
CRASH = Outcome(OutcomeKind.CRASHED, "executor_crashed")


@pytest.mark.parametrize(
    ("outcome", "policy", "answer", "expected"),
    [
        (SUCCESS, JobPolicy(), Answer.DONE, (JobState.SUCCEEDED, None, "succeeded")),
        (Outcome(OutcomeKind.FAILED, "why"), JobPolicy(), Answer.CANCELLED, (JobState.CANCELLED, None, "failed")),
        (Outcome(OutcomeKind.FAILED, "why"), LONE, Answer.CANCELLED, (JobState.CANCELLED, None, "failed")),
        (Outcome(OutcomeKind.TIMED_OUT, "why"), LONE, Answer.CANCELLED, (JobState.CANCELLED, None, "timed_out")),
        (Outcome(OutcomeKind.INTERRUPTED), JobPolicy(), Answer.CANCELLED, (JobState.CANCELLED, None, "interrupted")),
        (CRASH, POISONED, Answer.CANCELLED, (JobState.CANCELLED, None, "crashed")),
        (
            Outcome(OutcomeKind.FAILED_PERMANENTLY, "no_such_order"),
            JobPolicy(),
            Answer.DONE,
            (JobState.FAILED, "no_such_order", "failed_permanently"),
        ),
        (
            Outcome(OutcomeKind.CANCELLED, "cancel_requested"),
            JobPolicy(),
            Answer.DONE,
            (JobState.CANCELLED, None, "cancelled"),
        ),
    ],
    ids=["success", "retry", "exhausted", "timeout", "interrupted", "poison", "for good", "stopped"],
)
def test_only_a_success_and_an_end_for_good_stand_against_it(
    bench: Bench, outcome: Outcome, policy: JobPolicy, answer: Answer, expected: tuple[JobState, str | None, str]
) -> None:
    attempt = asked(bench, policy=policy)
    at_ms = bench.clock.now_ms()
    bench.clock.advance_ms(20)
    assert bench.run(bench.store.settle([settle(attempt, outcome, DICE)])) == [answer]
    job = bench.job(attempt.job_id)
    state, code, ran = expected
    assert (job.state, job.revision, job.due_at_ms, job.cancel_requested_at_ms) == (state, 4, None, at_ms)
    assert job.code == ("cancel_requested" if state is JobState.CANCELLED else code)
    (record,) = job.attempts
    assert (record.outcome, record.code, record.delay_ms) == (ran, outcome.code, None)
    assert bench.claim().attempts == []


def test_a_batch_is_answered_row_by_row_whatever_was_cancelled(bench: Bench) -> None:
    bench.dispatch(6)
    attempts = bench.claim().attempts
    bench.cancel(*(attempt.job_id for attempt in attempts[::2]))
    failure = Outcome(OutcomeKind.FAILED, "why")
    settlements = [settle(attempt, failure, DICE) for attempt in attempts[:4]]
    settlements += [settle(attempt, SUCCESS, DICE) for attempt in attempts[4:]]
    answers = bench.run(bench.store.settle(settlements))
    assert answers == [Answer.CANCELLED, Answer.DONE] * 2 + [Answer.DONE] * 2
    cancelled, retrying, succeeded = JobState.CANCELLED, JobState.RETRYING, JobState.SUCCEEDED
    states = [bench.job(attempt.job_id).state for attempt in attempts]
    assert states == [cancelled, retrying, cancelled, retrying, succeeded, succeeded]


def test_a_settlement_that_ended_cancelled_is_done_when_it_is_sent_again(bench: Bench) -> None:
    attempt = asked(bench)
    settlement = settle(attempt, Outcome(OutcomeKind.FAILED, "why"), DICE)
    assert bench.run(bench.store.settle([settlement])) == [Answer.CANCELLED]
    before = bench.job(attempt.job_id)
    assert bench.run(bench.store.settle([settlement])) == [Answer.DONE]
    assert bench.job(attempt.job_id) == before


def test_so_is_one_whose_attempt_is_written_as_something_else(bench: Bench) -> None:
    attempt = asked(bench)
    instead = IfCancelled(OutcomeKind.CANCELLED, "stopped", "by_hand")
    settlement = Settlement(attempt, FAILURE, JobState.RETRYING, "handler_failed", 500, instead)
    assert bench.run(bench.store.settle([settlement])) == [Answer.CANCELLED]
    assert ended(bench.job(attempt.job_id)) == (JobState.CANCELLED, "by_hand", [("cancelled", "stopped")])
    assert bench.run(bench.store.settle([settlement])) == [Answer.DONE]


def test_a_release_closes_it_uncharged(bench: Bench) -> None:
    first, second = asked(bench), asked(bench, LARGE)
    other = bench.claimed()
    assert bench.release(first, other, second) == [Answer.CANCELLED, Answer.DONE, Answer.CANCELLED]
    for attempt in (first, second):
        job = bench.job(attempt.job_id)
        assert ended(job) == (JobState.CANCELLED, "cancel_requested", [])
        assert (job.executions, job.revision, job.ended_at_ms) == (0, 4, bench.clock.now_ms())
    assert bench.job(other.job_id).state is JobState.PENDING
    assert bench.release(first) == [Answer.NOT_YOURS]


def test_a_begin_closes_it_uncharged(bench: Bench) -> None:
    attempt = asked(bench, LARGE)
    assert bench.begin(unlike(attempt, claim_token=bench.ids.secret())) == Begun(None)
    assert bench.begin(attempt) == Begun(None, "cancel_requested")
    job = bench.job(attempt.job_id)
    assert ended(job) == (JobState.CANCELLED, "cancel_requested", [])
    assert (job.executions, job.revision) == (0, 4)
    assert bench.begin(attempt) == Begun(None)


def test_a_begin_that_came_before_it_stands(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE)
    begun = bench.begin(attempt)
    bench.cancel(attempt.job_id)
    assert bench.begin(attempt) == begun
    assert bench.job(attempt.job_id).state is JobState.RUNNING
    assert list(bench.renew().cancels) == held(attempt)


@pytest.mark.parametrize("policy", [JobPolicy(max_unstarted=5), LONE, JobPolicy(max_unstarted=1)])
@BEGUN_OR_RESERVED
def test_recovery_ends_it_whatever_is_left_of_its_budgets(bench: Bench, payload: bytes, policy: JobPolicy) -> None:
    """F146: whoever was asked to stop it may be dead."""
    attempt = asked(bench, payload, policy=policy)
    bench.clock.advance_ms(LEASE_MS)
    assert recover_all(bench) == 1
    job = bench.job(attempt.job_id)
    attempts = [("cancelled", "cancel_requested")] if attempt.begun else []
    assert ended(job) == (JobState.CANCELLED, "cancel_requested", attempts)
    assert (job.executions, job.revision) == (int(attempt.begun), 4)
    assert recover_all(bench) == 0
    assert bench.claim().attempts == []


def _cancel(bench: Bench, attempt: Attempt) -> None:
    (answer,) = bench.cancel(attempt.job_id)
    assert answer.code is None


def _run_out(bench: Bench, attempt: Attempt) -> None:
    bench.clock.advance_ms(LEASE_MS)


def _recover(bench: Bench, attempt: Attempt) -> None:
    recover_all(bench)


@pytest.mark.parametrize(
    "steps",
    [(_cancel, _run_out, _recover), (_run_out, _cancel, _recover), (_run_out, _recover, _cancel)],
    ids=["cancel first", "cancel in between", "cancel last"],
)
@BEGUN_OR_RESERVED
def test_cancelled_lapsed_and_recovered_in_every_order_it_ends_cancelled(
    bench: Bench, payload: bytes, steps: tuple[Callable[[Bench, Attempt], None], ...]
) -> None:
    """F050."""
    attempt = bench.claimed(payload=payload)
    for step in steps:
        step(bench, attempt)
    assert bench.job(attempt.job_id).state is JobState.CANCELLED
    bench.clock.advance_ms(LEASE_MS)
    assert bench.claim().attempts == []


def test_a_cancel_while_recovery_decides_is_confirmed_and_kept_or_refused(bench: Bench) -> None:
    """F050: whoever stores what was read before it was locked loses the cancel."""
    attempt = bench.claimed()
    bench.clock.advance_ms(LEASE_MS)
    target = bench.target(attempt.job_id)
    other = bench.another()
    answers: list[ControlAnswer] = []

    def cancel() -> None:
        answers.extend(other.run(other.control(bench.order(ControlAction.CANCEL, target))).answers)

    meanwhile = threading.Thread(target=cancel)

    def decide(attempt: Attempt) -> Settlement:
        if meanwhile.ident is None:
            meanwhile.start()
            # A store that decides under its lock lets nobody in before the decision is made.
            meanwhile.join(0.2)
        return recover(attempt, DICE)

    try:
        bench.run(bench.store.recover(APPLICATION, decide, 10))
        meanwhile.join()
    finally:
        other.close()
    (answer,) = answers
    state = bench.job(attempt.job_id).state
    assert (answer.code, state) in [(None, JobState.CANCELLED), ("stale_revision", JobState.RETRYING)]


def test_it_is_kept_while_no_worker_is_up(bench: Bench) -> None:
    """F143."""
    attempt = bench.claimed()
    (waiting,) = bench.dispatch()
    bench.cancel(attempt.job_id, waiting)
    later = bench.another()
    try:
        assert later.run(later.claim(bench.plan())).attempts == []
        records = [later.run(later.job(APPLICATION, job_id)) for job_id in (attempt.job_id, waiting)]
        assert [record and record.cancel_requested_at_ms for record in records] == [bench.clock.now_ms()] * 2
        bench.clock.advance_ms(LEASE_MS)
        later.run(later.recover(APPLICATION, lambda attempt: recover(attempt, DICE), 10))
    finally:
        later.close()
    assert {bench.job(job_id).state for job_id in (attempt.job_id, waiting)} == {JobState.CANCELLED}


def test_a_later_generation_knows_nothing_of_it(bench: Bench) -> None:
    attempt = asked(bench)
    bench.release(attempt)
    bench.control(bench.order(ControlAction.RETRY, attempt.job_id))
    assert bench.job(attempt.job_id).cancel_requested_at_ms is None
    (second,) = bench.claim().attempts
    assert list(bench.renew(second).cancels) == []
    assert bench.retry(second, 0) is Answer.DONE
    assert bench.job(attempt.job_id).state is JobState.RETRYING
