"""A dispatch by hand is a command: one id does one thing, once, and is answered alike however often it is sent."""

import contextlib
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec
import pytest

from runwick.contracts.administration import Admission
from runwick.contracts.attempts import Lane
from runwick.contracts.controls import ControlAction, ManagementActor, SteerAction
from runwick.contracts.dispatching import (
    ANSWERS_KEPT_MS,
    COMMAND_LIFETIME_MAX_MS,
    Command,
    DuplicateMatch,
    Receipt,
    ReceiptDisposition,
)
from runwick.contracts.errors import StoreError, UniquenessConflict
from runwick.contracts.identity import job_of_operation
from runwick.contracts.limits import LimitKind
from runwick.contracts.revealing import AuditNote, Secret
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import Act
from tests.conformance.ground import ACTOR, APPLICATION, Bench
from tests.conformance.test_admission import close

NOTE: Final = AuditNote(actor=ACTOR, reason="the customer called")
WINDOW: Final[dict[str, Any]] = {"window_key": "w", "window_ms": 60_000, "fingerprint": b"r" * 32}
Make = Callable[[Bench, bytes, bytes], Act[Any]]
"""An act for a job, under a command id."""
MAKES: Final[dict[str, Make]] = {
    "dispatch": lambda bench, job_id, command_id: bench.store.dispatch([of(bench, command_id)], note=NOTE),
    "control": lambda bench, job_id, command_id: bench.store.control(
        bench.order(ControlAction.CANCEL, job_id, command_id=command_id)
    ),
    "steer": lambda bench, job_id, command_id: bench.store.steer(
        bench.steering(SteerAction.PAUSE, LimitKind.QUEUE, "reports", command_id=command_id)
    ),
    "reveal": lambda bench, job_id, command_id: bench.store.reveal(
        bench.showing(Secret.PAYLOAD, job_id, command_id=command_id)
    ),
}


def of(bench: Bench, operation_id: bytes, **changes: Any) -> Command:
    return bench.command(operation_id=operation_id, job_id=job_of_operation(operation_id), **changes)


def by_hand(bench: Bench, command: Command, note: AuditNote = NOTE) -> Receipt:
    (receipt,) = bench.run(bench.store.dispatch([command], note=note))
    assert isinstance(receipt, Receipt)
    return receipt


def everything(bench: Bench, job_id: bytes, command_id: bytes) -> tuple[object, ...]:
    """All that any of these commands could have changed."""
    receipt = bench.run(bench.store.resolve(APPLICATION, command_id))
    return bench.audit(), bench.events(), bench.job(job_id), bench.queue(), receipt


@contextlib.contextmanager
def conflict() -> Any:
    with pytest.raises(StoreError, match="was used for something else") as refused:
        yield
    assert refused.value.code == "operation_conflict"


@pytest.mark.parametrize(("first", "second"), [*itertools.permutations(MAKES, 2)])
def test_one_id_does_one_thing(bench: Bench, first: str, second: str) -> None:
    (job_id,), command_id = bench.dispatch(), bench.ids.ordered()
    again = MAKES[first](bench, job_id, command_id)
    bench.run(again)
    stands = everything(bench, job_id, command_id)
    with conflict():
        bench.run(MAKES[second](bench, job_id, command_id))
    assert everything(bench, job_id, command_id) == stands
    bench.run(again)
    assert everything(bench, job_id, command_id) == stands
    assert [record.command_id for record in bench.audit()] == [command_id]


def test_what_is_sent_again_is_answered_alike(bench: Bench) -> None:
    """Whatever its deadline, its trace and its declaration have become."""
    command = bench.command()
    receipt = by_hand(bench, command)
    trail = bench.audit()
    later = msgspec.structs.replace(command, deadline_ms=command.deadline_ms + 7, traceparent="00-1-2-01")
    assert by_hand(bench, later) == by_hand(bench, command) == receipt
    bench.succeed(*bench.claim().attempts)
    bench.clock.advance_ms(command.deadline_ms)
    close(bench, Admission.MAINTENANCE)
    assert by_hand(bench, command) == receipt
    assert bench.audit() == trail
    assert bench.job(receipt.job).state is JobState.SUCCEEDED


OTHERWISE: Final[list[dict[str, Any]]] = [
    {"payload": b'{"number":8}'},
    {"delay_ms": 5_000},
    {"not_before_ms": 9_000_000_000_000},
    {"lane": Lane("other", Priority.MEDIUM)},
    {"lane": Lane("reports", Priority.HIGH)},
    {"tenant": "acme"},
    {"metadata": b'{"a":"b"}'},
    {"active_key": "k"},
    WINDOW,
]


@pytest.mark.parametrize("changes", OTHERWISE, ids=str)
def test_another_request_is_refused(bench: Bench, changes: dict[str, Any]) -> None:
    command = bench.command()
    by_hand(bench, command)
    stands = everything(bench, command.job_id, command.operation_id)
    with conflict():
        by_hand(bench, msgspec.structs.replace(command, **changes))
    assert everything(bench, command.job_id, command.operation_id) == stands


@pytest.mark.parametrize(
    "note",
    [
        AuditNote(actor=ACTOR, reason="another"),
        AuditNote(actor=ManagementActor("somebody", "Somebody", "service"), reason=NOTE.reason),
    ],
)
def test_another_hand_is_refused(bench: Bench, note: AuditNote) -> None:
    command = bench.command()
    by_hand(bench, command)
    with conflict():
        by_hand(bench, command, note)
    assert len(bench.audit()) == 1


@pytest.mark.parametrize(
    ("keys", "match"), [({"active_key": "a"}, DuplicateMatch.ACTIVE), (WINDOW, DuplicateMatch.WINDOW)]
)
def test_a_job_that_was_found_is_answered_again(bench: Bench, keys: dict[str, Any], match: DuplicateMatch) -> None:
    (holder,) = bench.dispatch(**keys)
    command = bench.command(**keys)
    receipt = by_hand(bench, command)
    assert (receipt.job, receipt.disposition, receipt.duplicate_match) == (holder, ReceiptDisposition.REUSED, match)
    bench.cancel(holder)
    trail = bench.audit()
    assert by_hand(bench, command) == receipt
    for changes in ({"payload": b"[]"}, {"tenant": "acme"}):
        with conflict():
            by_hand(bench, msgspec.structs.replace(command, **changes))
    with conflict():
        bench.run(MAKES["steer"](bench, holder, command.operation_id))
    assert bench.audit() == trail


def test_its_answer_outlives_the_receipts_of_the_application(bench: Bench) -> None:
    bench.dispatch(active_key="a")
    command = bench.command(active_key="a")
    receipt = by_hand(bench, command)
    bench.clock.advance_ms(COMMAND_LIFETIME_MAX_MS + ANSWERS_KEPT_MS + 1)
    bench.tend()
    assert bench.run(bench.store.resolve(APPLICATION, command.operation_id)) is None
    fresh = bench.command(operation_id=command.operation_id, job_id=command.job_id, active_key="a")
    assert by_hand(bench, command) == by_hand(bench, fresh) == receipt
    assert len(bench.audit()) == 0


def test_a_refused_dispatch_leaves_its_id_free(bench: Bench) -> None:
    bench.dispatch(**WINDOW)
    command = bench.command(**{**WINDOW, "fingerprint": b"s" * 32})
    with pytest.raises(UniquenessConflict):
        by_hand(bench, command)
    failures = bench.run(bench.store.dispatch([command], continue_on_conflict=True, note=NOTE))
    assert not isinstance(failures[0], Receipt)
    bench.run(MAKES["steer"](bench, bench.dispatch()[0], command.operation_id))
    assert [record.action for record in bench.audit()] == ["pause"]


def test_an_operation_of_the_applications_own_is_no_command(bench: Bench) -> None:
    """It is not done by hand afterwards; and sent again by the application it is answered as ever."""
    created, found = bench.command(active_key="a"), bench.command(active_key="a")
    receipts = bench.send(created, found)
    for command in (created, found):
        with conflict():
            by_hand(bench, command)
    assert bench.audit() == []
    assert bench.send(created, found) == receipts
    command = bench.command()
    assert [by_hand(bench, command)] == bench.send(command)


def test_an_id_is_an_applications_own(bench: Bench) -> None:
    command = bench.command()
    by_hand(bench, command)
    (theirs,) = bench.dispatch(application="bakery")
    order = bench.showing(Secret.PAYLOAD, theirs, application="bakery", command_id=command.operation_id)
    assert bench.run(bench.store.reveal(order)) is not None


@pytest.mark.parametrize("other", ["dispatch", "reveal"])
def test_of_those_at_once_one_is_done(bench: Bench, other: str) -> None:
    """Two sendings are answered alike; of two different commands one is refused."""
    with ThreadPoolExecutor(2) as threads, contextlib.closing(bench.another()) as store:
        (job_id,) = bench.dispatch()
        for round_number in range(1, 9):
            command_id, together = bench.ids.ordered(), threading.Barrier(2)

            def send(run: Callable[[Act[Any]], Any], act: Act[Any], together: threading.Barrier = together) -> Any:
                together.wait(30)
                try:
                    return run(act)
                except StoreError as error:
                    return error.code

            command = of(bench, command_id)
            acts = [bench.store.dispatch([command], note=NOTE), MAKES["reveal"](bench, job_id, command_id)]
            if other == "dispatch":
                acts[1] = store.dispatch([command], note=NOTE)
            answers = [threads.submit(send, run, act) for run, act in zip((bench.run, store.run), acts, strict=True)]
            said = [answer.result(60) for answer in answers]
            if other == "dispatch":
                assert said[0] == said[1]
                assert isinstance(said[0][0], Receipt)
            else:
                assert said.count("operation_conflict") == 1
            assert len(bench.audit()) == round_number
