"""Pause and resume: nothing more is claimed from a queue, and all else goes on."""

import contextlib

import pytest

from runwick.contracts.administration import Admission
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.controls import ControlAction, SteerAction, SteerReply
from runwick.contracts.errors import AdmissionClosed, StoreError
from runwick.contracts.limits import LimitKind, QueueRecord
from runwick.contracts.outcomes import Answer
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import Outlook
from tests.conformance.ground import APPLICATION, HIGH, KINDS, LARGE, LOW, Bench, ids_of, resource

MAILS = Lane("mails", Priority.LOW)
BOTH = (HIGH, MAILS, LOW)


def test_a_paused_queue_gives_nothing_and_takes_dispatches(bench: Bench) -> None:
    first = bench.dispatch(2, lane=HIGH)
    (mail,) = bench.dispatch(lane=MAILS)
    assert bench.pause() == SteerReply(None, 1, "open", "paused")
    first += bench.dispatch(lane=HIGH)
    assert ids_of(bench.claim(lanes=BOTH).attempts) == [mail]
    claim = bench.claim(lanes=BOTH)
    assert (claim.attempts, claim.next_due_in_ms) == ([], None)
    assert bench.resume() == SteerReply(None, 2, "paused", "open")
    assert ids_of(bench.claim(lanes=BOTH).attempts) == first


def test_what_runs_goes_on(bench: Bench) -> None:
    running, reserved, released = bench.claimed(), bench.claimed(payload=LARGE), bench.claimed()
    bench.pause()
    assert bench.begin(reserved).attempt is not None
    assert bench.succeed(running) is bench.succeed(reserved) is Answer.DONE
    assert bench.release(released) == [Answer.DONE]
    assert bench.claim().attempts == []
    assert bench.cancel(released.job_id)[0].state is JobState.CANCELLED


def test_a_paused_queue_hides_nothing_behind_a_lone_job_of_it(bench: Bench) -> None:
    bench.dispatch(lane=HIGH)
    (mail,) = bench.dispatch(lane=MAILS)
    bench.pause()
    claim = bench.claim(lanes=BOTH, free=0, ahead=1)
    assert (ids_of(claim.attempts), claim.stopped_at_lone) == ([mail], False)


def test_every_process_sees_it_at_once(bench: Bench) -> None:
    with contextlib.closing(bench.another()) as other:
        (job_id,) = bench.dispatch()
        other.run(other.claim(bench.plan(free=0)))
        bench.pause()
        assert other.run(other.claim(bench.plan())).attempts == []
        bench.resume()
        assert ids_of(other.run(other.claim(bench.plan())).attempts) == [job_id]


def test_queues_are_known_from_registering_and_dispatching_with_how_they_stand(bench: Bench) -> None:
    assert bench.run(bench.store.queues(APPLICATION)) == []
    bench.run(bench.store.register(APPLICATION, [MAILS], KINDS))
    bench.dispatch()
    bench.dispatch(application="office", lane=Lane("letters", Priority.LOW))
    bench.pause()
    since_ms = bench.clock.now_ms()
    bench.clock.advance_ms(5)
    assert bench.run(bench.store.queues(APPLICATION)) == [
        QueueRecord(queue="mails", paused=False, revision=0, since_ms=None),
        QueueRecord(queue="reports", paused=True, revision=1, since_ms=since_ms),
    ]
    bench.resume()
    assert bench.queue() == QueueRecord(queue="reports", paused=False, revision=2, since_ms=None)


def test_a_queue_of_another_application_is_not_paused(bench: Bench) -> None:
    bench.dispatch()
    bench.dispatch(application="office")
    bench.pause()
    assert bench.claim().attempts == []
    assert len(bench.claim(application="office").attempts) == 1


def test_nothing_is_done_to_a_queue_that_does_not_stand_as_seen(bench: Bench) -> None:
    bench.dispatch()
    assert bench.pause("letters", expected_revision=0) == SteerReply("not_found")
    assert bench.pause(expected_revision=1) == SteerReply("stale_revision", 0, "open")
    assert bench.resume(expected_revision=0) == SteerReply("invalid_state", 0, "open")
    bench.pause()
    assert bench.pause() == SteerReply("invalid_state", 1, "paused")
    assert bench.resume(expected_revision=0) == SteerReply("stale_revision", 1, "paused")
    assert len(bench.audit()) == 1


def test_each_change_gets_one_audit_row(bench: Bench) -> None:
    bench.dispatch()
    command = bench.steering(SteerAction.PAUSE, LimitKind.QUEUE, "reports", reason="mail server down")
    bench.steer(command)
    bench.clock.advance_ms(7)
    bench.resume()
    paused, resumed = bench.audit()
    assert (paused.action, paused.target, paused.before, paused.after) == ("pause", "queue reports", "open", "paused")
    assert (paused.job_id, paused.generation, paused.reason) == (None, None, "mail server down")
    assert (paused.actor, paused.actor_display, paused.command_id) == ("ops-bot", "Ops bot", command.command_id)
    assert (resumed.action, resumed.before, resumed.after) == ("resume", "paused", "open")
    assert resumed.at_ms == paused.at_ms + 7


def test_sent_again_it_answers_what_it_answered_and_does_nothing(bench: Bench) -> None:
    bench.dispatch()
    command = bench.steering(SteerAction.PAUSE, LimitKind.QUEUE, "reports")
    assert not bench.steer(command).replayed
    bench.resume()
    assert bench.steer(command) == SteerReply(None, 1, "open", "paused", replayed=True)
    assert not bench.queue().paused


def test_what_changed_nothing_is_judged_anew(bench: Bench) -> None:
    bench.dispatch()
    command = bench.steering(SteerAction.RESUME, LimitKind.QUEUE, "reports", expected_revision=1)
    assert bench.steer(command).code == "stale_revision"
    bench.pause()
    assert bench.steer(command) == SteerReply(None, 2, "paused", "open")


def test_an_id_that_was_used_for_something_else_is_refused(bench: Bench) -> None:
    first, second = bench.dispatch(2)
    pause = bench.steering(SteerAction.PAUSE, LimitKind.QUEUE, "reports")
    cancel = bench.order(ControlAction.CANCEL, first)
    bench.steer(pause)
    bench.control(cancel)
    for misuse in (
        lambda: bench.resume(command_id=pause.command_id),
        lambda: bench.resume(command_id=cancel.command_id),
        lambda: bench.cancel(second, command_id=pause.command_id),
    ):
        with pytest.raises(StoreError) as refused:
            misuse()
        assert refused.value.code == "operation_conflict"
    assert bench.queue().paused
    assert bench.job(second).state is JobState.PENDING


def test_drain_lets_an_operator_steer_and_maintenance_does_not(bench: Bench) -> None:
    bench.dispatch()
    bench.administration.set_admission(Admission.DRAIN, APPLICATION)
    assert bench.pause().code is None
    bench.administration.set_admission(Admission.MAINTENANCE, APPLICATION)
    with pytest.raises(AdmissionClosed):
        bench.resume()
    assert bench.queue().paused


def test_the_outlook_tells_what_is_paused_and_counts_it_nowhere_else(bench: Bench) -> None:
    bench.claimed(lane=HIGH)
    bench.dispatch(2, lane=HIGH)
    bench.dispatch(lane=LOW, delay_ms=1_000)
    bench.dispatch(lane=LOW, kind=Kind("other", 1))
    bench.dispatch(lane=MAILS)
    bench.pause()
    assert bench.run(bench.store.outlook(APPLICATION, BOTH, KINDS)) == Outlook(
        due=1, later=0, leased=1, undecodable=0, postponed=0, oldest_due_ms=0, paused=4
    )


def test_whom_a_pause_keeps_from_coming_another_queue_replaces(bench: Bench) -> None:
    holder = bench.claimed(scopes=(resource("printer"),))
    bench.dispatch(lane=HIGH, scopes=(resource("printer"),))
    (mail,) = bench.dispatch(lane=MAILS, scopes=(resource("printer"),))
    assert bench.claim(lanes=BOTH).parked == 2
    bench.pause()
    bench.succeed(holder)
    assert ids_of(bench.claim(lanes=BOTH).attempts) == [mail]
