"""Uniqueness: what a dispatch with keys answers, and how long a key is held."""

import contextlib
from typing import Any

import pytest

from runwick.contracts.administration import Admission
from runwick.contracts.attempts import Kind
from runwick.contracts.controls import ControlAction
from runwick.contracts.dispatching import (
    ANSWERS_KEPT_MS,
    COMMAND_LIFETIME_MAX_MS,
    Command,
    DuplicateMatch,
    Receipt,
    ReceiptDisposition,
)
from runwick.contracts.errors import (
    AdmissionClosed,
    CommandExpired,
    ItemFailure,
    OutcomeUnknown,
    StoreError,
    UniquenessConflict,
)
from runwick.contracts.identity import id_text
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState
from tests.conformance.ground import APPLICATION, FAILURE, SEND, Bench, ids_of

REQUEST, OTHER_REQUEST = b"r" * 32, b"o" * 32
WINDOW_MS = 10_000


def windowed(bench: Bench, key: str = "w", fingerprint: bytes = REQUEST, **changes: Any) -> Command:
    return bench.command(window_key=key, window_ms=WINDOW_MS, fingerprint=fingerprint, **changes)


def answer(bench: Bench, command: Command) -> tuple[bytes, DuplicateMatch] | tuple[str, str]:
    """The job and the match, or the code and the other job."""
    try:
        (receipt,) = bench.send(command)
    except UniquenessConflict as conflict:
        return conflict.code, conflict.conflicting_job_id
    reused = receipt.disposition is ReceiptDisposition.REUSED
    assert reused == (receipt.duplicate_match is not DuplicateMatch.NONE)
    assert receipt.operation == command.operation_id
    return receipt.job, receipt.duplicate_match


@pytest.mark.parametrize("same_request", [True, False])
@pytest.mark.parametrize("active", ["free", "same job", "another job"])
@pytest.mark.parametrize("window", ["free", "held", "over"])
def test_both_keys_together(bench: Bench, window: str, active: str, same_request: bool) -> None:
    """The whole table of what two keys mean."""
    if active == "same job":
        holder = windowed(bench, active_key="a") if window != "free" else bench.command(active_key="a")
        bench.send(holder)
        of_window = of_active = holder.job_id
    else:
        first, second = windowed(bench), bench.command(active_key="a")
        if window != "free":
            bench.send(first)
        if active == "another job":
            bench.send(second)
        of_window, of_active = first.job_id, second.job_id
    if window == "over":
        bench.clock.advance_ms(WINDOW_MS)
    jobs = len(bench.events())
    command = windowed(bench, active_key="a", fingerprint=REQUEST if same_request else OTHER_REQUEST)
    if window == "held" and not same_request:
        expected: Any = ("uniqueness_conflict", id_text(of_window))
    elif window == "held" and active == "another job":
        expected = ("uniqueness_composition_conflict", id_text(of_window))
    elif window == "held":
        match = DuplicateMatch.WINDOW if active == "free" else DuplicateMatch.ACTIVE_AND_WINDOW
        expected = (of_window, match)
    elif active != "free":
        expected = (of_active, DuplicateMatch.ACTIVE)
    else:
        expected = (command.job_id, DuplicateMatch.NONE)
    assert answer(bench, command) == expected
    assert len(bench.events()) == jobs + (expected == (command.job_id, DuplicateMatch.NONE))


@pytest.mark.parametrize("end", ["success", "failure", "cancel", "expiry", "crash"])
def test_an_active_key_is_held_as_long_as_its_job_lives(bench: Bench, end: str) -> None:
    holder = bench.command(active_key="a", expires_in_ms=50_000)
    bench.send(holder)

    def is_held() -> bool:
        job, match = answer(bench, bench.command(active_key="a"))
        assert (match is DuplicateMatch.ACTIVE) == (job == holder.job_id)
        return match is DuplicateMatch.ACTIVE

    assert is_held()
    (attempt,) = bench.claim(lease_ms=1_000).attempts
    assert is_held()
    if end == "success":
        bench.succeed(attempt)
    elif end == "cancel":
        bench.retry(attempt, delay_ms=1_000)
        assert is_held()
        bench.cancel(holder.job_id)
    elif end == "expiry":
        bench.release(attempt)
        assert is_held()
        bench.clock.advance_ms(50_000)
        bench.run(bench.store.expire(APPLICATION, 10))
    elif end == "crash":
        bench.clock.advance_ms(1_000)
        assert is_held()
        bench.recover(JobState.FAILED, code="lease_lost")
    else:
        bench.settle(attempt, FAILURE, JobState.FAILED, code="handler_failed")
    assert not is_held()


def test_keys_belong_to_the_jobs_name_and_the_application(bench: Bench) -> None:
    commands = [
        windowed(bench, active_key="w"),
        windowed(bench, active_key="w", kind=SEND),
        windowed(bench, active_key="w", application="office"),
        windowed(bench, "W", active_key="W"),
        windowed(bench, "w ", active_key="w "),
    ]
    for command in commands:
        assert answer(bench, command) == (command.job_id, DuplicateMatch.NONE)
    other_version = windowed(bench, active_key="w", kind=Kind("reports.build", 2))
    assert answer(bench, other_version) == (commands[0].job_id, DuplicateMatch.ACTIVE_AND_WINDOW)


def test_a_window_outlives_its_job_does_not_slide_and_ends_to_the_millisecond(bench: Bench) -> None:
    first = windowed(bench)
    bench.send(first)
    bench.succeed(*bench.claim().attempts)
    bench.clock.advance_ms(WINDOW_MS - 1)
    assert answer(bench, windowed(bench)) == (first.job_id, DuplicateMatch.WINDOW)
    bench.clock.advance_ms(1)
    second = windowed(bench)
    assert answer(bench, second) == (second.job_id, DuplicateMatch.NONE)
    assert answer(bench, windowed(bench)) == (second.job_id, DuplicateMatch.WINDOW)


def test_a_window_that_is_linked_to_a_live_job_counts_from_the_dispatch_that_linked_it(bench: Bench) -> None:
    live = bench.command(active_key="a")
    bench.send(live)
    bench.clock.advance_ms(3_000)
    assert answer(bench, windowed(bench, active_key="a")) == (live.job_id, DuplicateMatch.ACTIVE)
    bench.succeed(*bench.claim().attempts)
    bench.clock.advance_ms(WINDOW_MS - 1)
    assert answer(bench, windowed(bench)) == (live.job_id, DuplicateMatch.WINDOW)
    bench.clock.advance_ms(1)
    assert answer(bench, windowed(bench))[1] is DuplicateMatch.NONE


@pytest.mark.parametrize("keys", [{"active_key": "a"}, {"window_key": "w", "window_ms": 9, "fingerprint": REQUEST}])
def test_other_retry_settings_are_drift_and_the_job_keeps_its_own(bench: Bench, keys: dict[str, Any]) -> None:
    bench.send(bench.command(policy=JobPolicy(max_executions=2), **keys))
    (same,) = bench.send(bench.command(policy=JobPolicy(max_executions=2), **keys))
    (drifted,) = bench.send(bench.command(policy=JobPolicy(max_executions=5), **keys))
    assert (same.policy_drift, drifted.policy_drift) == (False, True)
    assert bench.job(same.job).max_executions == 2


def test_a_conflict_says_who_and_writes_nothing_of_its_batch(bench: Bench) -> None:
    first = windowed(bench)
    bench.send(first)
    fresh, clash = bench.command(active_key="b"), windowed(bench, fingerprint=OTHER_REQUEST)
    with pytest.raises(UniquenessConflict, match=r'window key "w" of job "reports\.build"') as refused:
        bench.send(fresh, clash)
    assert refused.value.code == "uniqueness_conflict"
    assert (refused.value.conflicting_job_id, refused.value.ordinal) == (id_text(first.job_id), 1)
    for command in (fresh, clash):
        assert bench.run(bench.store.resolve(APPLICATION, command.operation_id)) is None
    assert answer(bench, fresh) == (fresh.job_id, DuplicateMatch.NONE)


def test_a_batch_may_go_on_without_those_that_conflict(bench: Bench) -> None:
    first = windowed(bench)
    bench.send(first)
    batch = [
        bench.command(),
        windowed(bench, fingerprint=OTHER_REQUEST),
        windowed(bench),
        windowed(bench, "x", active_key="a"),
        windowed(bench, "x", fingerprint=OTHER_REQUEST),
    ]
    for _ in range(2):
        plain, clash, reuse, created, late = bench.run(bench.store.dispatch(batch, continue_on_conflict=True))
        assert isinstance(plain, Receipt)
        assert plain.job == batch[0].job_id
        assert isinstance(clash, ItemFailure)
        assert isinstance(late, ItemFailure)
        assert (clash.ordinal, clash.code) == (1, "uniqueness_conflict")
        assert clash.conflicting_job_id == id_text(first.job_id)
        assert isinstance(reuse, Receipt)
        assert (reuse.job, reuse.disposition) == (first.job_id, "reused")
        assert isinstance(created, Receipt)
        assert created.disposition is ReceiptDisposition.CREATED
        assert (late.ordinal, late.conflicting_job_id) == (4, id_text(batch[3].job_id))
        # Sent again all is the same: what failed is judged anew, and fails again.
    bench.clock.advance_ms(WINDOW_MS)
    again = bench.run(bench.store.dispatch(batch, continue_on_conflict=True))
    assert isinstance(again[1], Receipt)
    assert again[1].job == batch[1].job_id
    assert isinstance(again[2], Receipt)
    assert again[2].job == first.job_id


def test_items_of_a_batch_are_judged_one_after_the_other(bench: Bench) -> None:
    batch = [bench.command(active_key="a"), bench.command(), bench.command(active_key="a"), windowed(bench)]
    batch.append(windowed(bench, active_key="a"))
    with pytest.raises(UniquenessConflict) as refused:
        bench.send(*batch)
    assert (refused.value.code, refused.value.ordinal) == ("uniqueness_composition_conflict", 4)
    assert refused.value.conflicting_job_id == id_text(batch[3].job_id)
    receipts = bench.send(*batch[:4])
    assert [receipt.job for receipt in receipts] == [batch[0].job_id, batch[1].job_id, batch[0].job_id, batch[3].job_id]
    assert len(bench.claim().attempts) == 3


def test_a_command_twice_in_one_batch_is_answered_alike(bench: Bench) -> None:
    command = windowed(bench, active_key="a")
    one, two = bench.send(command, command)
    assert one == two
    assert one.disposition is ReceiptDisposition.CREATED
    again = windowed(bench, active_key="a")
    reused, twice = bench.send(again, again)
    assert reused == twice
    assert reused.duplicate_match is DuplicateMatch.ACTIVE_AND_WINDOW
    clash = windowed(bench, fingerprint=OTHER_REQUEST)
    failures = bench.run(bench.store.dispatch([clash, clash], continue_on_conflict=True))
    assert [failure.ordinal for failure in failures if isinstance(failure, ItemFailure)] == [0, 1]


def test_a_reuse_is_answered_the_same_whatever_became_of_the_job(bench: Bench) -> None:
    bench.send(bench.command(active_key="a", policy=JobPolicy(max_executions=2)))
    reuse = bench.command(active_key="a")
    (receipt,) = bench.send(reuse)
    assert (receipt.disposition, receipt.policy_drift) == (ReceiptDisposition.REUSED, True)
    bench.succeed(*bench.claim().attempts)
    bench.send(bench.command(active_key="a"))
    assert bench.send(reuse) == [receipt]
    assert bench.run(bench.store.resolve(APPLICATION, reuse.operation_id)) == receipt
    assert bench.run(bench.store.resolve("office", reuse.operation_id)) is None
    with contextlib.closing(bench.another()) as other:
        assert other.run(other.resolve(APPLICATION, reuse.operation_id)) == receipt


def test_a_reuse_is_answered_until_a_day_after_its_deadline(bench: Bench) -> None:
    bench.send(bench.command(active_key="a"))
    reuse = bench.command(active_key="a")
    (receipt,) = bench.send(reuse)
    bench.clock.advance_ms(COMMAND_LIFETIME_MAX_MS + ANSWERS_KEPT_MS)
    bench.tend()
    assert bench.send(reuse) == [receipt]
    bench.clock.advance_ms(1)
    bench.tend()
    with pytest.raises(OutcomeUnknown) as unknown:
        bench.send(reuse)
    assert unknown.value.code == "expired_unknown"
    assert bench.run(bench.store.resolve(APPLICATION, reuse.operation_id)) is None


def test_one_that_comes_late_finds_nothing(bench: Bench) -> None:
    bench.send(bench.command(active_key="a"))
    late = bench.command(active_key="a", deadline_ms=bench.clock.now_ms())
    bench.clock.advance_ms(1)
    with pytest.raises(CommandExpired):
        bench.send(late)


def test_a_drained_application_answers_what_was_applied_and_reuses_nothing_more(bench: Bench) -> None:
    bench.send(bench.command(active_key="a"))
    reuse = bench.command(active_key="a")
    receipts = bench.send(reuse)
    bench.administration.set_admission(Admission.DRAIN, APPLICATION)
    assert bench.send(reuse) == receipts
    with pytest.raises(AdmissionClosed):
        bench.send(bench.command(active_key="a"))


@pytest.mark.parametrize("action", [ControlAction.RETRY, ControlAction.RERUN])
def test_a_job_whose_key_is_anothers_is_not_opened_again_and_the_others_are(
    bench: Bench, action: ControlAction
) -> None:
    """F089."""
    ended = []
    for key in ("a", "b", None):
        bench.send(bench.command(active_key=key))
        (attempt,) = bench.claim().attempts
        if action is ControlAction.RERUN:
            bench.succeed(attempt)
        else:
            bench.settle(attempt, FAILURE, JobState.FAILED, code="handler_failed")
        ended.append(attempt.job_id)
    (live,) = bench.dispatch(active_key="a")
    before = bench.job(ended[0])
    answers = bench.control(bench.order(action, *ended)).answers
    assert [each.code for each in answers] == ["uniqueness_conflict", None, None]
    assert (answers[0].state, answers[0].revision) == (before.state, before.revision)
    assert bench.job(ended[0]) == before
    assert answer(bench, bench.command(active_key="b")) == (ended[1], DuplicateMatch.ACTIVE)
    assert len(bench.audit()) == 2
    bench.cancel(live)
    (again,) = bench.control(bench.order(action, ended[0])).answers
    assert again.code is None
    assert sorted(ids_of(bench.claim().attempts)) == sorted(ended)


def test_of_two_targets_with_one_key_the_first_gets_it(bench: Bench) -> None:
    ended = []
    for _ in range(2):
        bench.send(bench.command(active_key="a"))
        (attempt,) = bench.claim().attempts
        bench.succeed(attempt)
        ended.append(attempt.job_id)
    answers = bench.control(bench.order(ControlAction.RERUN, *reversed(ended))).answers
    assert [each.code for each in answers] == [None, "uniqueness_conflict"]
    assert ids_of(bench.claim().attempts) == ended[1:]


def test_a_store_error_is_no_conflict(bench: Bench) -> None:
    """Whoever catches conflicts alone still hears of everything else."""
    first = windowed(bench)
    bench.send(first)
    stolen = windowed(bench, job_id=first.job_id)
    with pytest.raises(StoreError) as refused:
        bench.run(bench.store.dispatch([stolen], continue_on_conflict=True))
    assert refused.value.code == "operation_conflict"
