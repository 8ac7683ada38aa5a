"""Controls: done to what still stands as the operator saw it, once, with an audit row in the same commit."""

import concurrent.futures
import threading
import time
from collections.abc import Callable, Sequence

import msgspec
import pytest

from runwick.contracts.administration import Admission
from runwick.contracts.attempts import Attempt
from runwick.contracts.controls import ControlAction, ControlAnswer, ControlCommand, ControlReply, JobTarget
from runwick.contracts.errors import AdmissionClosed, InvalidArgument, StoreError, StoreUnavailable
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import Answer, Outcome, OutcomeKind
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState
from runwick.contracts.stores import Store
from runwick.policy.recover import recover
from runwick.policy.settle import settle
from tests.ambient import FakeDice
from tests.conformance.ground import (
    ACTOR,
    APPLICATION,
    FAILURE,
    LARGE,
    LEASE_MS,
    LONE,
    SUCCESS,
    Bench,
    ids_of,
)

CANCEL, RETRY, RERUN = ControlAction.CANCEL, ControlAction.RETRY, ControlAction.RERUN
DICE = FakeDice()
Make = Callable[[Bench], bytes]
CRASH = Outcome(OutcomeKind.CRASHED, "executor_crashed")


def failed(bench: Bench) -> Attempt:
    attempt = bench.claimed()
    bench.settle(attempt, FAILURE, JobState.FAILED, code="executions_exhausted")
    return attempt


def do(bench: Bench, action: ControlAction, *targets: bytes | JobTarget) -> list[ControlAnswer]:
    return list(bench.control(bench.order(action, *targets)).answers)


def insist(store: Store, command: ControlCommand) -> ControlReply:
    """Send a command until nobody's transaction stands in its way."""
    deadline_s = time.monotonic() + 20
    while True:
        try:
            return store.run(store.control(command))
        except StoreUnavailable:
            if time.monotonic() > deadline_s:
                raise


def test_every_target_is_answered_for_itself(bench: Bench) -> None:
    done = failed(bench)
    waiting, elsewhere = bench.dispatch(), bench.dispatch(application="bakery")
    stands = bench.target(waiting[0])
    targets = [
        JobTarget(bench.ids.ordered(), 1, 1),
        JobTarget(elsewhere[0], 1, 1),
        bench.target(done.job_id),
        stands,
    ]
    gone, theirs, ended, cancelled = bench.cancel(*targets)
    assert gone == ControlAnswer(targets[0].job_id, "not_found")
    assert theirs == ControlAnswer(elsewhere[0], "not_found")
    assert ended == ControlAnswer(done.job_id, "invalid_state", JobState.FAILED, 1, 3)
    assert cancelled == ControlAnswer(waiting[0], None, JobState.CANCELLED, 1, 2)
    assert len(bench.audit()) == 1
    assert bench.job(elsewhere[0], "bakery").state is JobState.PENDING


@pytest.mark.parametrize("action", ControlAction)
@pytest.mark.parametrize("is_known", [True, False], ids=["known", "new"])
def test_a_command_that_names_a_job_twice_is_refused_whole(bench: Bench, action: ControlAction, is_known: bool) -> None:
    makes = {CANCEL: _pending, RETRY: _failed, RERUN: _succeeded, ControlAction.LOOK: _shown}
    other, twice = makes[action](bench), makes[action](bench)
    targets = [bench.target(job_id) for job_id in (other, twice)] + [JobTarget(twice, 7, 7)]
    before = [bench.job(job_id) for job_id in (other, twice)], bench.events()
    changes = {} if is_known else {"application": "unheard_of"}
    order = bench.order(action, *targets, **changes)
    for _ in range(2):
        with pytest.raises(
            InvalidArgument, match=f"job {id_text(twice)} is named twice; nothing was written"
        ) as refused:
            bench.control(order)
        assert refused.value.code == "invalid_argument"
    assert ([bench.job(job_id) for job_id in (other, twice)], bench.events()) == before
    assert bench.audit() == []
    assert list(bench.renew().looks) == []
    once = bench.control(msgspec.structs.replace(order, targets=targets[:2]))
    assert (once.replayed, [answer.code for answer in once.answers]) == (False, [None if is_known else "not_found"] * 2)


@pytest.mark.parametrize(
    ("generation", "revision", "code"),
    [
        (2, 1, "stale_generation"),
        (0, 9, "stale_generation"),
        (1, 2, "stale_revision"),
        (1, 0, "stale_revision"),
    ],
)
def test_a_target_that_is_not_as_it_was_seen_is_left_alone(
    bench: Bench, generation: int, revision: int, code: str
) -> None:
    (job_id,) = bench.dispatch()
    before = bench.job(job_id)
    (answer,) = bench.cancel(JobTarget(job_id, generation, revision))
    assert answer == ControlAnswer(job_id, code, JobState.PENDING, 1, 1)
    assert bench.job(job_id) == before
    assert bench.audit() == []


def test_what_is_stale_is_said_before_what_is_not_allowed(bench: Bench) -> None:
    job_id = failed(bench).job_id
    codes = [
        answer.code
        for target in (JobTarget(job_id, 2, 9), JobTarget(job_id, 1, 9), JobTarget(job_id, 1, 3))
        for answer in bench.cancel(target)
    ]
    assert codes == ["stale_generation", "stale_revision", "invalid_state"]


def test_a_cancel_meant_for_an_earlier_generation_does_nothing(bench: Bench) -> None:
    """F145."""
    job_id = failed(bench).job_id
    meant = bench.target(job_id)
    do(bench, RETRY, job_id)
    before = bench.job(job_id)
    (answer,) = bench.cancel(meant)
    assert (answer.code, answer.generation, answer.revision) == ("stale_generation", 2, 4)
    assert bench.job(job_id) == before
    assert ids_of(bench.claim().attempts) == [job_id]


def _pending(bench: Bench) -> bytes:
    return bench.dispatch()[0]


def _retrying(bench: Bench) -> bytes:
    attempt = bench.claimed()
    bench.retry(attempt, 60_000)
    return attempt.job_id


def _running(bench: Bench) -> bytes:
    return bench.claimed().job_id


def _reserved(bench: Bench) -> bytes:
    return bench.claimed(payload=LARGE).job_id


def _succeeded(bench: Bench) -> bytes:
    attempt = bench.claimed()
    bench.succeed(attempt)
    return attempt.job_id


def _failed(bench: Bench) -> bytes:
    return failed(bench).job_id


def _shown(bench: Bench) -> bytes:
    attempt = bench.claimed()
    bench.marked(attempt)
    return attempt.job_id


def _cancelled(bench: Bench) -> bytes:
    (job_id,) = bench.dispatch()
    bench.cancel(job_id)
    return job_id


@pytest.mark.parametrize(
    ("make", "allowed"),
    [
        (_pending, {CANCEL}),
        (_retrying, {CANCEL}),
        (_running, {CANCEL}),
        (_reserved, {CANCEL}),
        (_succeeded, {RERUN}),
        (_failed, {RETRY}),
        (_cancelled, {RETRY}),
    ],
)
@pytest.mark.parametrize("action", [CANCEL, RETRY, RERUN])
def test_what_may_be_done_in_which_state(bench: Bench, make: Make, allowed: set[str], action: ControlAction) -> None:
    job_id = make(bench)
    before = bench.job(job_id)
    audits = len(bench.audit())
    (answer,) = do(bench, action, job_id)
    assert answer.code == (None if action in allowed else "invalid_state")
    job = bench.job(job_id)
    assert (answer.state, answer.generation, answer.revision) == (job.state, job.generation, job.revision)
    assert job.revision == before.revision + (action in allowed)
    assert len(bench.audit()) == audits + (action in allowed)
    if action not in allowed:
        assert job == before


@pytest.mark.parametrize(("make", "action"), [(_failed, RETRY), (_cancelled, RETRY), (_succeeded, RERUN)])
def test_a_new_generation_begins_with_nothing_counted(bench: Bench, make: Make, action: ControlAction) -> None:
    job_id = make(bench)
    before = bench.job(job_id)
    bench.clock.advance_ms(7_000)
    (answer,) = do(bench, action, job_id)
    assert answer == ControlAnswer(job_id, None, JobState.PENDING, 2, before.revision + 1)
    job = bench.job(job_id)
    assert (job.state, job.code, job.generation, job.revision) == (JobState.PENDING, None, 2, before.revision + 1)
    assert (job.executions, job.due_at_ms, job.ended_at_ms) == (0, bench.clock.now_ms(), None)
    assert (job.result, job.cancel_requested_at_ms, job.created_at_ms) == (None, None, before.created_at_ms)
    assert list(job.attempts) == list(before.attempts)
    (attempt,) = bench.claim().attempts
    assert (attempt.job_id, attempt.generation, attempt.number, attempt.execution) == (job_id, 2, 1, 1)
    assert (attempt.crashes, attempt.unstarted) == (0, 0)
    bench.settle(attempt, Outcome(OutcomeKind.SUCCEEDED, result=b"2"), JobState.SUCCEEDED)
    job = bench.job(job_id)
    assert (job.state, job.result, job.revision) == (JobState.SUCCEEDED, b"2", before.revision + 3)
    generations = [(record.generation, record.number) for record in job.attempts]
    assert generations == [(1, record.number) for record in before.attempts] + [(2, 1)]


def use_up(bench: Bench, job_id: bytes) -> tuple[str | None, int]:
    """Let the job crash or die unstarted until it is done with; answers why, and after how many claims."""
    claims = 0
    while attempts := bench.claim().attempts:
        (attempt,) = attempts
        claims += 1
        if attempt.begun:
            assert bench.run(bench.store.settle([settle(attempt, CRASH, DICE)])) == [Answer.DONE]
        else:
            bench.clock.advance_ms(LEASE_MS)
            assert bench.run(bench.store.recover(APPLICATION, lambda attempt: recover(attempt, DICE), 10)) == 1
        bench.clock.advance_ms(60_000)
    return bench.job(job_id).code, claims


@pytest.mark.parametrize(
    ("code", "payload", "policy"),
    [
        ("executions_exhausted", b"{}", JobPolicy(max_executions=2, max_crashes=9)),
        ("poison_job", b"{}", JobPolicy(max_executions=9, max_crashes=2)),
        ("reservation_abandonment_exhausted", LARGE, JobPolicy(max_unstarted=2)),
    ],
)
def test_every_budget_is_fresh_after_a_retry(bench: Bench, code: str, payload: bytes, policy: JobPolicy) -> None:
    (job_id,) = bench.dispatch(payload=payload, policy=policy)
    assert use_up(bench, job_id) == (code, 2)
    numbers = [record.number for record in bench.job(job_id).attempts]
    for generation in (2, 3):
        do(bench, RETRY, job_id)
        assert use_up(bench, job_id) == (code, 2)
        job = bench.job(job_id)
        assert (job.state, job.generation) == (JobState.FAILED, generation)
        assert [record.number for record in job.attempts] == numbers * generation


def test_an_attempt_of_an_earlier_generation_writes_nothing_into_the_next(bench: Bench) -> None:
    old = bench.claimed()
    settlement = settle(old, SUCCESS, DICE)
    bench.run(bench.store.settle([settlement]))
    do(bench, RERUN, old.job_id)
    before = bench.job(old.job_id)
    assert bench.run(bench.store.settle([settlement])) == [Answer.DONE]
    assert bench.run(bench.store.settle([settle(old, FAILURE, DICE)])) == [Answer.NOT_YOURS]
    assert bench.release(old) == [Answer.NOT_YOURS]
    assert bench.renew(old).lost == {old.job}
    assert bench.job(old.job_id) == before


def test_a_command_sent_again_answers_what_it_answered_first(bench: Bench) -> None:
    """Whatever was done to the jobs since."""
    done, running = failed(bench), bench.claimed(payload=LARGE)
    (waiting,) = bench.dispatch()
    stale = JobTarget(waiting, 1, 7)
    command = bench.order(RETRY, JobTarget(bench.ids.ordered(), 1, 1), stale, running.job_id, done.job_id)
    first = bench.control(command)
    codes = [answer.code for answer in first.answers]
    assert codes == ["not_found", "stale_revision", "invalid_state", None]
    assert not first.replayed
    bench.succeed(bench.claim(free=1).attempts[0])
    before = [bench.job(job_id) for job_id in (waiting, running.job_id, done.job_id)]
    other = bench.another()
    try:
        for store in (bench.store, other):
            assert store.run(store.control(command)) == msgspec.structs.replace(first, replayed=True)
    finally:
        other.close()
    assert [bench.job(job_id) for job_id in (waiting, running.job_id, done.job_id)] == before
    assert len(bench.audit()) == 1


def test_one_that_changed_nothing_is_judged_anew(bench: Bench) -> None:
    wanted = bench.command()
    command = bench.order(CANCEL, JobTarget(wanted.job_id, 1, 1))
    for _ in range(2):
        reply = bench.control(command)
        assert ([answer.code for answer in reply.answers], reply.replayed) == (["not_found"], False)
    bench.run(bench.store.dispatch([wanted]))
    reply = bench.control(command)
    assert ([answer.code for answer in reply.answers], reply.replayed) == ([None], False)
    assert bench.control(command).replayed


@pytest.mark.parametrize("change", ["action", "actor", "reason", "targets"])
def test_a_command_id_used_for_something_else_is_a_conflict(bench: Bench, change: str) -> None:
    first, second = bench.dispatch(2)
    command = bench.order(CANCEL, first, reason="wrong year")
    bench.control(command)
    values = {
        "action": RETRY,
        "actor": msgspec.structs.replace(ACTOR, subject="night-bot"),
        "reason": None,
        "targets": [bench.target(second)],
    }
    before = [bench.job(job_id) for job_id in (first, second)]
    with pytest.raises(StoreError, match="was used for something else") as refused:
        bench.control(msgspec.structs.replace(command, **{change: values[change]}))
    assert refused.value.code == "operation_conflict"
    assert [bench.job(job_id) for job_id in (first, second)] == before
    assert len(bench.audit()) == 1


def test_applications_do_not_share_command_ids(bench: Bench) -> None:
    (ours,), (theirs,) = bench.dispatch(), bench.dispatch(application="bakery")
    command_id = bench.ids.ordered()
    (first,) = bench.cancel(ours, command_id=command_id)
    target = bench.target(theirs, "bakery")
    (second,) = bench.cancel(target, command_id=command_id, application="bakery")
    assert (first.code, second.code) == (None, None)


@pytest.mark.parametrize("mode", [Admission.DRAIN, Admission.MAINTENANCE])
@pytest.mark.parametrize("action", [CANCEL, RETRY])
def test_what_was_applied_is_answered_in_every_mode(bench: Bench, mode: Admission, action: ControlAction) -> None:
    """A refusal says that nothing was written, which would be false of the first sending."""
    (waiting,) = bench.dispatch()
    command = bench.order(action, waiting if action is CANCEL else _cancelled(bench))
    first = bench.control(command)
    bench.administration.set_admission(Admission.DRAIN, APPLICATION)
    bench.administration.set_admission(mode, APPLICATION)
    assert bench.control(command) == msgspec.structs.replace(first, replayed=True)
    if mode is Admission.MAINTENANCE or action is RETRY:
        with pytest.raises(AdmissionClosed):
            bench.control(msgspec.structs.replace(command, command_id=bench.ids.ordered()))


def test_the_audit_tells_who_did_what_and_why(bench: Bench) -> None:
    running, done = bench.claimed(), failed(bench)
    cancel = bench.order(CANCEL, running.job_id, reason="wrong \u00fc year")
    bench.control(cancel)
    bench.clock.advance_ms(30)
    retry = bench.order(RETRY, done.job_id)
    bench.control(retry)
    asked, opened = bench.audit()
    assert (asked.actor, asked.actor_display, asked.actor_scheme) == ("ops-bot", "Ops bot", "service")
    assert (asked.action, asked.job_id, asked.generation) == ("cancel", running.job_id, 1)
    assert (asked.before, asked.after) == ("running", "running")
    assert (asked.reason, asked.command_id) == ("wrong \u00fc year", cancel.command_id)
    assert (opened.action, opened.job_id, opened.generation) == ("retry", done.job_id, 2)
    assert (opened.before, opened.after, opened.reason) == ("failed", "pending", None)
    assert (opened.command_id, opened.at_ms) == (retry.command_id, asked.at_ms + 30)
    assert bench.audit("bakery") == []


def test_a_hundred_jobs_are_cancelled_in_one_commit(bench: Bench) -> None:
    job_ids = bench.dispatch(100)
    bench.claim(free=40)
    answers = bench.cancel(*job_ids)
    assert [answer.job_id for answer in answers] == job_ids
    assert {(answer.code, answer.revision, answer.cancel_requested) for answer in answers} == {
        (None, 3, True),
        (None, 2, False),
    }
    assert sum(answer.cancel_requested for answer in answers) == 40
    records = bench.audit()
    assert sorted(record.job_id or b"" for record in records) == sorted(job_ids)
    assert len({record.command_id for record in records}) == 1


def test_a_job_that_was_opened_again_lives_as_long_as_at_first(bench: Bench) -> None:
    (job_id,) = bench.dispatch(expires_in_ms=1_000)
    bench.cancel(job_id)
    bench.clock.advance_ms(50_000)
    do(bench, RETRY, job_id)
    assert bench.job(job_id).expires_at_ms == bench.clock.now_ms() + 1_000
    bench.clock.advance_ms(1_000)
    assert bench.claim().attempts == []
    assert bench.job(job_id).code == "expired"


def test_a_job_that_was_opened_again_wakes_workers_like_a_new_one(bench: Bench) -> None:
    job_id = _cancelled(bench)
    woken = threading.Event()
    stop = bench.store.wake_on_work(woken.set)
    try:
        do(bench, RETRY, job_id)
        assert woken.wait(10)
    finally:
        stop()


def at_once(bench: Bench, commands: Sequence[ControlCommand]) -> list[ControlReply]:
    """The replies to commands that are sent at the same time, each by a process of its own."""
    stores = [bench.another() for _ in commands]
    ready = threading.Barrier(len(commands))

    def send(store: Store, command: ControlCommand) -> ControlReply:
        ready.wait(20)
        return insist(store, command)

    try:
        with concurrent.futures.ThreadPoolExecutor(len(commands)) as threads:
            return list(threads.map(send, stores, commands))
    finally:
        for store in stores:
            store.close()


@pytest.mark.parametrize("action", [CANCEL, RETRY])
def test_one_command_sent_by_many_at_once_is_done_once(bench: Bench, action: ControlAction) -> None:
    command = bench.order(action, _pending(bench) if action is CANCEL else _failed(bench))
    replies = at_once(bench, [command] * 4)
    assert sorted(reply.replayed for reply in replies) == [False, True, True, True]
    assert all(list(reply.answers) == list(replies[0].answers) for reply in replies)
    assert replies[0].answers[0].code is None
    assert len(bench.audit()) == 1


@pytest.mark.parametrize("action", [CANCEL, RETRY])
def test_of_many_commands_for_one_job_one_is_done(bench: Bench, action: ControlAction) -> None:
    """The others find that it is not as they saw it."""
    target = bench.target(_pending(bench) if action is CANCEL else _failed(bench))
    replies = at_once(bench, [bench.order(action, target) for _ in range(4)])
    codes = sorted(str(reply.answers[0].code) for reply in replies)
    stale = "stale_revision" if action is CANCEL else "stale_generation"
    assert codes == ["None", stale, stale, stale]
    assert bench.job(target.job_id).revision == target.revision + 1
    assert len(bench.audit()) == 1


def test_whoever_looks_meanwhile_sees_the_old_generation_or_the_new(bench: Bench) -> None:
    """F149: the one ends and the next begins in one commit. F148: what was answered is there for everybody."""
    job_id = _cancelled(bench)
    reader = bench.another()
    stop = threading.Event()

    def look() -> set[tuple[int, int, JobState]]:
        seen = set()
        while not stop.is_set():
            record = reader.run(reader.job(APPLICATION, job_id))
            assert record is not None
            seen.add((record.generation, record.revision, record.state))
        return seen

    try:
        with concurrent.futures.ThreadPoolExecutor(1) as threads:
            seen = threads.submit(look)
            for generation in range(2, 12):
                do(bench, RETRY, job_id)
                record = reader.run(reader.job(APPLICATION, job_id))
                assert record is not None
                assert (record.generation, record.state) == (generation, JobState.PENDING)
                bench.cancel(job_id)
            stop.set()
    finally:
        stop.set()
        reader.close()
    expected = {(1, 2, JobState.CANCELLED)}
    for generation in range(2, 12):
        expected |= {
            (generation, 2 * generation - 1, JobState.PENDING),
            (generation, 2 * generation, JobState.CANCELLED),
        }
    assert seen.result() <= expected


def test_a_lone_job_that_was_opened_again_may_still_not_run_ahead(bench: Bench) -> None:
    attempt = bench.claimed(policy=LONE)
    bench.succeed(attempt)
    do(bench, RERUN, attempt.job_id)
    claim = bench.claim(free=0, ahead=5)
    assert (claim.attempts, claim.stopped_at_lone) == ([], True)
