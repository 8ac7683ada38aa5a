"""Look: an operator asks for the stack of a running attempt, its worker hears of it and answers, once."""

import threading

import msgspec
import pytest

from runwick.contracts.activity import StackAnswer, StackRequest
from runwick.contracts.attempts import Attempt
from runwick.contracts.controls import ControlAction, ControlAnswer
from runwick.contracts.states import JobState
from tests.conformance.ground import APPLICATION, LARGE, LEASE_MS, Bench

TEXT = 'File "\u00fc.py", line 3 in build\n' * 400


def look(bench: Bench, job_id: bytes, **changes: object) -> ControlAnswer:
    (answer,) = bench.control(bench.order(ControlAction.LOOK, job_id, **changes)).answers
    return answer


def running(bench: Bench) -> Attempt:
    """An attempt whose handler has begun, as its worker told."""
    attempt = bench.claimed()
    bench.marked(attempt)
    return attempt


def stack(bench: Bench, attempt: Attempt, application: str = APPLICATION) -> StackAnswer | None:
    return bench.run(bench.store.stack(application, attempt.attempt_id))


def test_what_is_asked_for_is_heard_answered_and_read(bench: Bench) -> None:
    attempt, other = running(bench), running(bench)
    before = bench.job(attempt.job_id)
    answer = look(bench, attempt.job_id)
    assert answer == ControlAnswer(
        attempt.job_id, None, JobState.RUNNING, 1, before.revision, attempt_id=attempt.attempt_id
    )
    assert bench.job(attempt.job_id) == before
    request = StackRequest(attempt.attempt_id, attempt.job, attempt.claim_token)
    for _ in range(2):
        assert list(bench.renew(attempt, other).looks) == [request]
    assert stack(bench, attempt) is None
    bench.renew(attempt, stacks=[StackAnswer(attempt.attempt_id, TEXT)])
    assert stack(bench, attempt) == StackAnswer(attempt.attempt_id, TEXT)
    assert list(bench.renew(attempt).looks) == []
    assert stack(bench, attempt, "bakery") is None
    assert stack(bench, other) is None


def test_the_call_that_answers_is_asked_no_more(bench: Bench) -> None:
    attempt = running(bench)
    look(bench, attempt.job_id)
    assert list(bench.renew(stacks=[StackAnswer(attempt.attempt_id, TEXT)]).looks) == []


def test_it_is_audited(bench: Bench) -> None:
    attempt = running(bench)
    look(bench, attempt.job_id, reason="stands still")
    (record,) = bench.audit()
    assert (record.action, record.job_id, record.generation) == ("look", attempt.job_id, 1)
    assert (record.before, record.after, record.reason) == ("running", "running", "stands still")


def test_asked_again_it_is_answered_anew(bench: Bench) -> None:
    attempt = running(bench)
    for text in ("line 1", "line 2"):
        assert look(bench, attempt.job_id).code is None
        assert stack(bench, attempt) is None
        assert len(bench.renew(attempt).looks) == 1
        bench.renew(attempt, stacks=[StackAnswer(attempt.attempt_id, text)])
        assert stack(bench, attempt) == StackAnswer(attempt.attempt_id, text)
    assert len(bench.audit()) == 2


def test_the_same_command_sent_again_asks_nothing_new(bench: Bench) -> None:
    attempt = running(bench)
    command = bench.order(ControlAction.LOOK, attempt.job_id)
    first = bench.control(command)
    bench.renew(stacks=[StackAnswer(attempt.attempt_id, "line 1")])
    assert bench.control(command) == msgspec.structs.replace(first, replayed=True)
    assert stack(bench, attempt) == StackAnswer(attempt.attempt_id, "line 1")
    assert len(bench.audit()) == 1


@pytest.mark.parametrize("payload", [b"{}", LARGE], ids=["handed over", "reserved"])
def test_there_is_nothing_to_see_before_it_has_begun(bench: Bench, payload: bytes) -> None:
    attempt = bench.claimed(payload=payload)
    answer = look(bench, attempt.job_id)
    assert (answer.code, answer.attempt_id, answer.revision) == ("invalid_state", None, 2)
    bench.release(attempt)
    assert look(bench, attempt.job_id).code == "invalid_state"
    assert bench.audit() == []


def test_there_is_nothing_to_see_after_it_has_ended(bench: Bench) -> None:
    attempt = running(bench)
    bench.succeed(attempt)
    assert look(bench, attempt.job_id).code == "invalid_state"


def test_a_worker_is_asked_for_its_own_attempts_while_they_go_on(bench: Bench) -> None:
    attempt, other = running(bench), running(bench)
    look(bench, attempt.job_id)
    look(bench, other.job_id)
    owner = bench.worker
    bench.worker = bench.ids.ordered()
    stolen = StackAnswer(attempt.attempt_id, "line 9")
    assert list(bench.renew(stacks=[stolen]).looks) == []
    assert stack(bench, attempt) is None
    bench.worker = owner
    bench.succeed(other)
    assert [request.attempt_id for request in bench.renew(attempt).looks] == [attempt.attempt_id]


def test_what_nobody_asked_for_is_not_kept(bench: Bench) -> None:
    attempt = running(bench)
    bench.renew(stacks=[StackAnswer(attempt.attempt_id, "line 1")])
    assert stack(bench, attempt) is None


def test_a_renewal_asks_for_16_stacks_at_most(bench: Bench) -> None:
    attempts = [running(bench) for _ in range(18)]
    reply = bench.control(bench.order(ControlAction.LOOK, *(attempt.job_id for attempt in attempts)))
    assert [answer.attempt_id for answer in reply.answers] == [attempt.attempt_id for attempt in attempts]
    looks = bench.renew(*attempts).looks
    assert len(looks) == 16
    answers = [StackAnswer(request.attempt_id, "line 1") for request in looks]
    assert len(bench.renew(*attempts, stacks=answers).looks) == 2


def test_what_is_not_answered_in_half_a_minute_makes_room_for_what_is_asked_later(bench: Bench) -> None:
    attempts = [running(bench) for _ in range(17)]
    silent, later = attempts[:16], attempts[16]
    bench.control(bench.order(ControlAction.LOOK, *(attempt.job_id for attempt in silent)))
    bench.clock.advance_ms(1)
    look(bench, later.job_id)
    expected = {attempt.attempt_id for attempt in silent}
    assert {request.attempt_id for request in bench.renew(*attempts).looks} == expected
    bench.clock.advance_ms(29_998)
    assert {request.attempt_id for request in bench.renew(*attempts).looks} == expected
    bench.clock.advance_ms(1)
    assert [request.attempt_id for request in bench.renew(*attempts).looks] == [later.attempt_id]
    late = StackAnswer(silent[0].attempt_id, TEXT)
    bench.renew(*attempts, stacks=[late])
    assert stack(bench, silent[0]) == late
    look(bench, silent[1].job_id)
    asked = {request.attempt_id for request in bench.renew(*attempts).looks}
    assert asked == {later.attempt_id, silent[1].attempt_id}


def test_looks_whose_attempts_have_ended_take_nobodys_place(bench: Bench) -> None:
    attempts = [running(bench) for _ in range(17)]
    bench.control(bench.order(ControlAction.LOOK, *(attempt.job_id for attempt in attempts[:16])))
    look(bench, attempts[16].job_id)
    for attempt in attempts[:16]:
        bench.succeed(attempt)
    assert [request.attempt_id for request in bench.renew(attempts[16]).looks] == [attempts[16].attempt_id]


def test_when_its_worker_dies_the_job_tells(bench: Bench) -> None:
    attempt = running(bench)
    look(bench, attempt.job_id)
    bench.clock.advance_ms(LEASE_MS)
    bench.recover(code="lease_lost")
    assert stack(bench, attempt) is None
    assert bench.job(attempt.job_id).attempt_id is None


def test_it_wakes_the_worker_that_holds_the_job(bench: Bench) -> None:
    attempt = running(bench)
    woken = threading.Event()
    stop = bench.store.wake_on_requests(bench.worker, woken.set)
    try:
        look(bench, attempt.job_id)
        assert woken.wait(10)
    finally:
        stop()
