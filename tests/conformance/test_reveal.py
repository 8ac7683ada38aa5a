"""Reveals and dispatches by hand: what is shown or sent, and the one row in the audit trail that says so."""

from typing import Any

import pytest

from runwick.contracts.activity import StackAnswer
from runwick.contracts.administration import Admission
from runwick.contracts.attempts import Attempt
from runwick.contracts.controls import ControlAction, ManagementActor
from runwick.contracts.dispatching import Receipt, ReceiptDisposition
from runwick.contracts.errors import AdmissionClosed, ItemFailure, StoreError
from runwick.contracts.history import AuditRecord, EventKind
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import BlackBox, Death, ErrorDetail, Outcome, OutcomeKind
from runwick.contracts.revealing import AuditNote, RevealCommand, Revealed, Secret
from runwick.contracts.states import JobState
from tests.conformance.ground import ACTOR, APPLICATION, LARGE, Bench, resource
from tests.conformance.test_admission import close

ERROR = ErrorDetail("builtins.ValueError", "no such page", "Traceback …")
BOX = BlackBox("last lines", "File …")
CRASH = Outcome(OutcomeKind.CRASHED, "executor_crashed", error=ERROR, death=Death("signal", 9), black_box=BOX)
NOTE = AuditNote(actor=ACTOR, reason="the customer called")


def shown(bench: Bench, what: Secret, job_id: bytes, **changes: Any) -> Revealed | None:
    return bench.run(bench.store.reveal(bench.showing(what, job_id, **changes)))


def crashed(bench: Bench, **changes: Any) -> Attempt:
    attempt = bench.claimed(**changes)
    bench.settle(attempt, CRASH, JobState.FAILED, code="executions_exhausted")
    return attempt


def looked_at(bench: Bench) -> Attempt:
    """A running attempt whose stack was asked for and has come."""
    attempt = bench.claimed()
    bench.marked(attempt)
    bench.control(bench.order(ControlAction.LOOK, attempt.job_id))
    bench.renew(attempt, stacks=[StackAnswer(attempt.attempt_id, "File 'a.py', line 3")])
    return attempt


def sent(bench: Bench, note: AuditNote | None, **changes: Any) -> list[Receipt | ItemFailure]:
    return bench.run(bench.store.dispatch([bench.command(**changes)], note=note))


@pytest.mark.parametrize("payload", [b'{"to":"a@b.example"}', LARGE])
def test_a_payload_is_shown_byte_for_byte(bench: Bench, payload: bytes) -> None:
    (job_id,) = bench.dispatch(payload=payload)
    assert shown(bench, Secret.PAYLOAD, job_id) == Revealed(json=payload)


def test_a_result_is_shown_while_the_job_stands_there(bench: Bench) -> None:
    attempt = bench.claimed()
    assert shown(bench, Secret.RESULT, attempt.job_id) == Revealed()
    bench.settle(attempt, Outcome(OutcomeKind.SUCCEEDED, result=b'{"pages":7}'), JobState.SUCCEEDED)
    assert shown(bench, Secret.RESULT, attempt.job_id) == Revealed(json=b'{"pages":7}')
    bench.control(bench.order(ControlAction.RERUN, attempt.job_id))
    assert shown(bench, Secret.RESULT, attempt.job_id) == Revealed()


def test_what_an_attempt_left_behind_is_shown_of_that_attempt(bench: Bench) -> None:
    attempt = crashed(bench)
    of = {"attempt_id": attempt.attempt_id}
    assert shown(bench, Secret.ERROR, attempt.job_id, **of) == Revealed(error=ERROR)
    assert shown(bench, Secret.BLACK_BOX, attempt.job_id, **of) == Revealed(black_box=BOX)
    bench.control(bench.order(ControlAction.RETRY, attempt.job_id))
    (second,) = bench.claim().attempts
    bench.succeed(second)
    assert shown(bench, Secret.ERROR, attempt.job_id, **of) == Revealed(error=ERROR)
    assert shown(bench, Secret.ERROR, attempt.job_id, attempt_id=second.attempt_id) == Revealed()
    assert [record.generation for record in bench.trail(action="reveal_error")] == [2, 1, 1]


def test_a_stack_is_shown_once_it_has_come(bench: Bench) -> None:
    waits = bench.claimed()
    assert shown(bench, Secret.STACK, waits.job_id, attempt_id=waits.attempt_id) == Revealed()
    attempt = looked_at(bench)
    assert shown(bench, Secret.STACK, attempt.job_id, attempt_id=attempt.attempt_id) == Revealed(
        text="File 'a.py', line 3"
    )


@pytest.mark.parametrize("what", [Secret.ERROR, Secret.BLACK_BOX, Secret.STACK])
def test_nothing_is_shown_of_another_jobs_attempt(bench: Bench, what: Secret) -> None:
    """Whoever may see one job learns nothing of another by naming its attempt."""
    other = looked_at(bench) if what is Secret.STACK else crashed(bench)
    (job_id,) = bench.dispatch()
    assert shown(bench, what, job_id, attempt_id=other.attempt_id) == Revealed()
    assert shown(bench, what, job_id, attempt_id=bytes(16)) == Revealed()
    assert shown(bench, what, job_id) == Revealed()
    assert len(bench.trail(action=f"reveal_{what.value}", job_id=job_id)) == 3


def test_each_reveal_leaves_one_row_and_an_event(bench: Bench) -> None:
    attempt = crashed(bench)
    bench.clock.advance_ms(4)
    command = bench.showing(Secret.ERROR, attempt.job_id, attempt_id=attempt.attempt_id, reason="ticket 7")
    bench.run(bench.store.reveal(command))
    (record,) = bench.audit()
    assert record == AuditRecord(
        cursor=record.cursor,
        at_ms=bench.clock.now_ms(),
        actor=ACTOR.subject,
        actor_display=ACTOR.display,
        actor_scheme=ACTOR.scheme,
        action="reveal_error",
        job_id=attempt.job_id,
        generation=1,
        before=None,
        after=None,
        reason="ticket 7",
        command_id=command.command_id,
        target=f"attempt {id_text(attempt.attempt_id)}",
    )
    event = bench.events()[-1]
    assert (event.what, event.state, event.command_id) == (EventKind.CONTROLLED, "reveal_error", command.command_id)
    shown(bench, Secret.PAYLOAD, attempt.job_id)
    assert [(row.action, row.target) for row in bench.audit()[1:]] == [("reveal_payload", None)]


def test_a_reveal_changes_nothing_of_its_job(bench: Bench) -> None:
    attempt = crashed(bench)
    before = bench.job(attempt.job_id)
    shown(bench, Secret.PAYLOAD, attempt.job_id)
    assert bench.job(attempt.job_id) == before


def test_a_reveal_that_is_sent_again_reads_again_and_writes_no_second_row(bench: Bench) -> None:
    attempt = looked_at(bench)
    command = bench.showing(Secret.STACK, attempt.job_id, attempt_id=attempt.attempt_id)
    first = bench.run(bench.store.reveal(command))
    bench.control(bench.order(ControlAction.LOOK, attempt.job_id))
    trail = bench.audit()
    assert first == Revealed(text="File 'a.py', line 3")
    assert bench.run(bench.store.reveal(command)) == Revealed(replayed=True)
    bench.renew(attempt, stacks=[StackAnswer(attempt.attempt_id, "File 'b.py'")])
    assert bench.run(bench.store.reveal(command)) == Revealed(text="File 'b.py'", replayed=True)
    assert bench.audit() == trail


def test_of_a_job_that_is_not_there_nothing_is_written(bench: Bench) -> None:
    (job_id,) = bench.dispatch()
    (theirs,) = bench.dispatch(application="bakery")
    for what in Secret:
        for missing in (bytes(16), theirs):
            assert shown(bench, what, missing, attempt_id=bytes(16)) is None
    assert shown(bench, Secret.PAYLOAD, job_id, application="yard") is None
    assert bench.audit() == bench.audit("bakery") == bench.audit("yard") == []
    command = bench.showing(Secret.PAYLOAD, bytes(16))
    assert bench.run(bench.store.reveal(command)) is None
    bench.control(bench.order(ControlAction.CANCEL, job_id, command_id=command.command_id))  # the id is still free
    assert len(bench.audit()) == 1


def another(command: RevealCommand, bench: Bench, other: bytes) -> list[RevealCommand]:
    """With the same id, but for something else."""
    values = {name: getattr(command, name) for name in command.__struct_fields__}
    changes: list[dict[str, Any]] = [
        {"what": Secret.RESULT},
        {"job_id": other},
        {"attempt_id": bytes(16)},
        {"reason": "another"},
        {"actor": ManagementActor("somebody", "Somebody", "service")},
    ]
    return [RevealCommand(**{**values, **change}) for change in changes]


def test_a_command_id_is_used_for_one_thing(bench: Bench) -> None:
    job_id, other = bench.dispatch(2)
    command = bench.showing(Secret.PAYLOAD, job_id)
    bench.run(bench.store.reveal(command))
    cancel = bench.order(ControlAction.CANCEL, other)
    bench.control(cancel)
    trail = bench.audit()
    for conflicting in another(command, bench, other):
        with pytest.raises(StoreError, match="give this reveal a command id of its own") as refused:
            bench.run(bench.store.reveal(conflicting))
        assert refused.value.code == "operation_conflict"
    with pytest.raises(StoreError, match="was used for something else"):
        shown(bench, Secret.PAYLOAD, job_id, command_id=cancel.command_id)
    with pytest.raises(StoreError, match="was used for something else"):
        bench.control(bench.order(ControlAction.CANCEL, job_id, command_id=command.command_id))
    assert bench.audit() == trail


def test_in_maintenance_nothing_is_shown_that_was_not_before(bench: Bench) -> None:
    """For its row could not be written."""
    (job_id,) = bench.dispatch()
    command = bench.showing(Secret.PAYLOAD, job_id)
    bench.run(bench.store.reveal(command))
    close(bench, Admission.MAINTENANCE)
    with pytest.raises(AdmissionClosed):
        shown(bench, Secret.PAYLOAD, job_id)
    assert bench.run(bench.store.reveal(command)) == Revealed(json=b"{}", replayed=True)
    assert len(bench.audit()) == 1


def test_a_dispatch_by_hand_leaves_one_row_with_its_job(bench: Bench) -> None:
    command = bench.command()
    act = bench.store.dispatch([command], note=NOTE)
    (receipt,) = bench.run(act)
    assert isinstance(receipt, Receipt)
    (record,) = bench.audit()
    assert record == AuditRecord(
        cursor=record.cursor,
        at_ms=bench.clock.now_ms(),
        actor=ACTOR.subject,
        actor_display=ACTOR.display,
        actor_scheme=ACTOR.scheme,
        action="dispatch",
        job_id=receipt.job,
        generation=1,
        before=None,
        after="pending",
        reason="the customer called",
        command_id=command.operation_id,
    )
    events = bench.events()
    assert [(event.what, event.state) for event in events] == [
        (EventKind.DISPATCHED, None),
        (EventKind.CONTROLLED, "dispatch"),
    ]
    assert bench.run(act) == [receipt]
    assert bench.audit() == [record]
    assert [attempt.job_id for attempt in bench.claim().attempts] == [receipt.job]


@pytest.mark.parametrize(
    "keys", [{"active_key": "a"}, {"window_key": "w", "window_ms": 60_000, "fingerprint": bytes(32)}]
)
def test_a_dispatch_by_hand_that_finds_a_job_leaves_no_row(bench: Bench, keys: dict[str, Any]) -> None:
    (first,) = sent(bench, NOTE, **keys)
    (second,) = sent(bench, NOTE, **keys)
    assert isinstance(first, Receipt)
    assert isinstance(second, Receipt)
    assert second.disposition is ReceiptDisposition.REUSED
    assert [record.job_id for record in bench.audit()] == [first.job]


def test_a_dispatch_by_hand_of_a_job_with_limits_leaves_its_row(bench: Bench) -> None:
    sent(bench, NOTE, scopes=(resource("printer"),))
    sent(bench, None, scopes=(resource("printer"),))
    sent(bench, None)
    assert [record.action for record in bench.audit()] == ["dispatch"]


def test_a_dispatch_by_hand_that_is_refused_leaves_nothing(bench: Bench) -> None:
    bench.dispatch()
    close(bench, Admission.DRAIN)
    with pytest.raises(AdmissionClosed):
        sent(bench, NOTE)
    assert bench.audit() == []
    assert len(bench.run(bench.store.events(APPLICATION, None, 10)).events) == 1
