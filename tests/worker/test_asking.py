"""What others want of a worker's runs: that they stop, or show their stack."""

import asyncio

from runwick.contracts.activity import StackAnswer, StackRequest
from runwick.contracts.attempts import PAYLOAD_INLINE_MAX_BYTES, Attempt, Held
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.controls import ControlAction
from runwick.contracts.dispatching import Receipt
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.telemetry import events
from tests.worker.ground import Ground

USER = CancellationCause.USER_REQUESTED
CANCELLED = Outcome(OutcomeKind.CANCELLED, "cancel_requested")


def begun(ground: Ground, **policy: int) -> tuple[Receipt, Attempt]:
    """One job whose handler has begun."""
    (receipt,) = ground.dispatch(1, **policy)
    asyncio.run(ground.claimer.run_once())
    (attempt,) = ground.backend.held
    ground.backend.mark(attempt, ground.clock.now_ms())
    return receipt, attempt


def poll(ground: Ground, times: int = 1) -> None:
    """Let so many safety polls pass."""
    for _ in range(times):
        ground.clock.advance_ms(900)
        asyncio.run(ground.heartbeat.run_once())


def test_a_cancel_reaches_the_run_with_the_next_poll_and_once() -> None:
    ground = Ground(free=1)
    receipt, attempt = begun(ground)
    assert ground.control(receipt).cancel_requested
    poll(ground, times=3)
    assert ground.backend.asked == [(attempt, USER, 10.0)]
    assert ground.said == [events.AttemptAsked(attempt, USER)]
    ground.backend.end(attempt, CANCELLED)
    asyncio.run(ground.finalizer.run_once())
    assert (ground.states([receipt]), ground.tally.cancelled) == (["cancelled"], 1)


def test_what_was_handed_over_and_has_not_begun_is_given_back_and_never_runs() -> None:
    ground = Ground(free=1)
    (receipt,) = ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    (attempt,) = ground.backend.held
    ground.control(receipt)
    poll(ground)
    asyncio.run(ground.releaser.run_once())
    record = ground.job(receipt)
    assert (record.state, record.executions, record.attempts) == ("cancelled", 0, [])
    assert (ground.backend.held, len(ground.registry), ground.tally.released) == ([], 0, 0)
    assert ground.said == [events.AttemptAsked(attempt, USER), events.EndedUnbegun([attempt], "cancel_requested")]


def test_a_cancel_that_comes_while_its_payload_is_read_keeps_the_job_from_running() -> None:
    ground = Ground(free=1)
    (receipt,) = ground.dispatch(1, payload=b'{"text":"' + b"x" * PAYLOAD_INLINE_MAX_BYTES + b'"}')

    def meanwhile() -> None:
        ground.control(receipt)
        (lease,) = ground.registry.held()
        ground.parts.asker.cancel([lease])

    ground.store.meanwhile["begin"] = meanwhile
    asyncio.run(ground.claimer.run_once())
    assert ground.backend.held == []
    asyncio.run(ground.releaser.run_once())
    record = ground.job(receipt)
    assert (record.state, record.executions) == ("cancelled", 0)


def test_a_cancel_of_what_has_ended_is_left_to_its_settlement() -> None:
    ground = Ground(free=1)
    receipt, attempt = begun(ground)
    ground.backend.end(attempt, Outcome(OutcomeKind.FAILED, "handler_failed"))
    ground.control(receipt)
    poll(ground)
    assert ground.backend.asked == []
    asyncio.run(ground.finalizer.run_once())
    assert ground.states([receipt]) == ["cancelled"]


def test_a_cancel_of_an_earlier_lease_of_the_same_job_asks_nobody() -> None:
    ground = Ground(free=1)
    _, attempt = begun(ground)
    ground.parts.asker.cancel([Held(attempt.job, ground.ids.secret()), Held(attempt.job + 1, attempt.claim_token)])
    assert ground.backend.asked == []


def test_a_stack_is_asked_for_once_and_told_with_the_next_call() -> None:
    ground = Ground(free=1)
    receipt, attempt = begun(ground)
    poll(ground, times=2)  # the store must know that it has begun
    assert ground.control(receipt, ControlAction.LOOK).attempt_id == attempt.attempt_id
    poll(ground, times=3)
    assert ground.backend.looks == [attempt.attempt_id]
    ground.sinks[0].looked(StackAnswer(attempt.attempt_id, "in handle"))
    poll(ground, times=2)
    answer = ground.store.run(ground.store.stack("reports", attempt.attempt_id))
    assert answer == StackAnswer(attempt.attempt_id, "in handle")
    assert ground.backend.looks == [attempt.attempt_id]
    ground.control(receipt, ControlAction.LOOK)
    poll(ground)
    assert ground.backend.looks == [attempt.attempt_id] * 2, "who asks again gets a fresh one"


def test_a_look_that_came_to_nothing_is_asked_for_again() -> None:
    ground = Ground(free=1)
    _, attempt = begun(ground)
    request = StackRequest(attempt.attempt_id, attempt.job, attempt.claim_token)
    for waited_ms, asked in ((0, 1), (5_999, 1), (1, 2), (5_999, 2)):
        ground.clock.advance_ms(waited_ms)
        ground.parts.asker.look([request])
        assert ground.backend.looks == [attempt.attempt_id] * asked
