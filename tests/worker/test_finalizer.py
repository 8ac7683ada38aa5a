import asyncio

import pytest

from runwick.contracts.dispatching import Receipt
from runwick.contracts.errors import AdmissionClosed, OutcomeUnknown, StoreUnavailable
from runwick.contracts.outcomes import (
    BLACK_BOX_MAX_BYTES,
    BlackBox,
    Death,
    ErrorDetail,
    Outcome,
    OutcomeKind,
)
from runwick.telemetry import events
from tests.worker.ground import IMPATIENT, Ground
from tests.worker.store import EVERY, never

FAILED = Outcome(OutcomeKind.FAILED, "handler_failed")


def running(ground: Ground, count: int) -> list[Receipt]:
    receipts = ground.dispatch(count)
    asyncio.run(ground.claimer.run_once())
    assert len(ground.backend.held) == count
    return receipts


def test_a_batch_of_different_ends_is_one_call() -> None:
    ground = Ground(free=3)
    receipts = running(ground, 3)
    first, second, third = ground.backend.held
    ground.backend.end(first)
    ground.backend.end(second, FAILED)
    ground.backend.end(third, Outcome(OutcomeKind.FAILED_PERMANENTLY, "order_not_found"))
    asyncio.run(ground.finalizer.run_once())
    assert ground.store.calls.count("settle") == 1
    assert ground.states(receipts) == ["succeeded", "retrying", "failed"]
    assert len(ground.registry) == 0
    assert (ground.tally.succeeded, ground.tally.retried, ground.tally.failed) == (1, 1, 1)


def test_a_completion_waits_for_company_only_while_another_is_expected_soon() -> None:
    ground = Ground(free=2)
    running(ground, 2)
    first, _ = ground.backend.held
    ground.backend.expected_ms = 5.0
    ground.backend.end(first)
    pause_s = asyncio.run(ground.finalizer.run_once())
    assert (pause_s is not None and 0 < pause_s <= 0.02, ground.store.calls) == (True, ["claim"])
    ground.clock.advance_ms(21)
    asyncio.run(ground.finalizer.run_once())
    assert ground.store.calls == ["claim", "settle"]


@pytest.mark.parametrize("kind", [OutcomeKind.CANCELLED, OutcomeKind.CRASHED, OutcomeKind.TIMED_OUT])
def test_the_end_of_what_was_stopped_or_died_waits_for_no_company(kind: OutcomeKind) -> None:
    ground = Ground(free=2)
    running(ground, 2)
    ground.backend.expected_ms = 5.0
    ground.backend.end(ground.backend.held[0], Outcome(kind, "why"))
    asyncio.run(ground.finalizer.run_once())
    assert ground.store.calls == ["claim", "settle"]


def test_errors_and_black_boxes_count_for_the_size_of_a_batch() -> None:
    ground = Ground(free=200)
    receipts = running(ground, 127)
    large = "x" * BLACK_BOX_MAX_BYTES
    for attempt in list(ground.backend.held):
        error, box = ErrorDetail("signal", "killed", large), BlackBox(large, large)
        ground.backend.end(attempt, Outcome(OutcomeKind.CRASHED, "executor_crashed", error=error, black_box=box))
    while asyncio.run(ground.finalizer.run_once()) is not None:
        pass
    assert ground.store.calls == ["claim", "settle", "settle"], "127 × 48 KiB are more than 4 MiB"
    assert ground.states(receipts) == ["retrying"] * 127


def test_an_end_whose_content_is_refused_keeps_neither_death_nor_black_box() -> None:
    ground = Ground(free=1)
    (receipt,) = running(ground, 1)
    ground.store.refuses = lambda settlement: settlement.outcome.black_box is not None
    death, box = Death("signal", signal=9, phase="handle"), BlackBox("a line", "")
    outcome = Outcome(OutcomeKind.CRASHED, "executor_crashed", death=death, black_box=box)
    ground.backend.end(ground.backend.held[0], outcome)
    asyncio.run(ground.finalizer.run_once())
    (attempt,) = ground.job(receipt).attempts
    assert (attempt.code, attempt.death, attempt.black_box) == ("settlement_rejected", None, None)


def test_where_somebody_cancelled_a_failure_ends_cancelled_and_a_success_stands() -> None:
    ground = Ground(free=2)
    failing, succeeding = running(ground, 2)
    told: list[events.Settled] = []
    ground.bus.listen(events.Settled, told.append)
    for receipt in (failing, succeeding):
        ground.control(receipt)
    first, second = ground.backend.held
    ground.backend.end(first, FAILED)
    ground.backend.end(second)
    asyncio.run(ground.finalizer.run_once())
    assert ground.states([failing, succeeding]) == ["cancelled", "succeeded"]
    assert (ground.tally.cancelled, ground.tally.succeeded, len(ground.registry)) == (1, 1, 0)
    assert [settlement.state for settlement in told[0].settlements] == ["cancelled", "succeeded"]
    assert told[0].settlements[0].code == "cancel_requested"


def test_a_completion_does_not_wait_for_a_long_run() -> None:
    ground = Ground(free=2)
    running(ground, 2)
    ground.backend.expected_ms = 500.0
    ground.backend.end(ground.backend.held[0])
    asyncio.run(ground.finalizer.run_once())
    assert ground.store.calls == ["claim", "settle"]


def test_a_write_that_fails_is_repeated_with_its_decision_until_it_lands() -> None:
    ground = Ground()
    (receipt,) = running(ground, 1)
    ground.store.faults["settle"] = [StoreUnavailable("store_unavailable", "busy")] * 4
    ground.backend.end(ground.backend.held[0], FAILED)
    pauses = []
    for _ in range(4):
        ground.dice.thrown = 0.5
        pauses.append(asyncio.run(ground.finalizer.run_once()))
        assert asyncio.run(ground.finalizer.run_once()) == pauses[-1], "nothing shortens the pause"
        ground.clock.advance_ms(31_000)
    assert pauses == [1.0, 2.0, 4.0, 8.0]
    assert len(ground.registry) == 1, "the ticket is held until the write has landed"
    ground.dice.thrown = 0.999
    asyncio.run(ground.finalizer.run_once())
    record = ground.job(receipt)
    assert record.state == "retrying"
    assert record.due_at_ms == ground.clock.now_ms() + 3_750, "the delay drawn when the outcome came, not a new one"
    delayed = ground.heard(events.SettlementDelayed)
    assert [event.tries for event in delayed] == [1, 2, 3, 4]
    assert [event.overdue for event in delayed] == [False, True, True, True]


def test_a_settlement_whose_answer_was_lost_is_sent_again_and_counted_once() -> None:
    ground = Ground(free=1)
    (receipt,) = running(ground, 1)
    ground.store.faults_after["settle"] = [OutcomeUnknown("outcome_unknown", "the answer was lost")]
    ground.backend.end(ground.backend.held[0], FAILED)
    asyncio.run(ground.finalizer.run_once())
    assert (ground.tally.retried, len(ground.registry)) == (0, 1)
    ground.clock.advance_ms(2_000)
    asyncio.run(ground.finalizer.run_once())
    assert (ground.tally.retried, ground.tally.lost, len(ground.registry)) == (1, 0, 0)
    assert len(ground.job(receipt).attempts) == 1


def test_one_refused_result_does_not_hold_up_the_others() -> None:
    ground = Ground(free=5)
    receipts = running(ground, 5)
    culprit = ground.backend.held[3]
    ground.store.refuses = lambda settlement: (
        settlement.attempt.job == culprit.job and settlement.code != "settlement_rejected"
    )
    for attempt in list(ground.backend.held):
        ground.backend.end(attempt)
    asyncio.run(ground.finalizer.run_once())
    states = ground.states(receipts)
    assert states == ["succeeded", "succeeded", "succeeded", "failed", "succeeded"]
    assert ground.job(receipts[3]).code == "settlement_rejected"


def test_an_end_that_is_refused_even_without_content_is_let_go_so_that_its_lease_runs_out() -> None:
    ground = Ground(free=1)
    (receipt,) = running(ground, 1)
    ground.store.refuses = lambda settlement: True
    ground.backend.end(ground.backend.held[0])
    asyncio.run(ground.finalizer.run_once())
    assert len(ground.registry) == 0, "nobody renews it any more"
    assert ground.finalizer.idle
    assert [type(event) for event in ground.said] == [
        events.SettlementRefused,
        events.SettlementRefused,
        events.LeaseLost,
    ]
    ground.clock.advance_ms(61_000)
    ground.recovery.due()
    asyncio.run(ground.recovery.run_once())
    assert ground.job(receipt).state == "retrying"


def test_a_result_after_the_lease_had_gone_changes_nothing() -> None:
    ground = Ground(free=1)
    (receipt,) = running(ground, 1)
    (attempt,) = ground.backend.held
    ground.clock.advance_ms(61_000)
    ground.recovery.due()
    asyncio.run(ground.recovery.run_once())
    ground.backend.end(attempt)
    asyncio.run(ground.finalizer.run_once())
    record = ground.job(receipt)
    assert (record.state, [a.outcome for a in record.attempts]) == ("retrying", ["abandoned"])
    assert [type(event) for event in ground.said] == [events.Recovered, events.LeaseLost]


def test_nothing_is_written_for_a_lease_that_was_lost_here() -> None:
    ground = Ground(free=1)
    (receipt,) = running(ground, 1)
    (attempt,) = ground.backend.held
    ground.clock.advance_ms(51_000)
    asyncio.run(ground.watchdog.run_once())
    assert ground.backend.stopped_runs == [attempt]
    ground.backend.end(attempt)
    asyncio.run(ground.finalizer.run_once())
    assert "settle" not in ground.store.calls
    assert ground.job(receipt).state == "running"


def test_a_locked_row_waits_apart_with_a_growing_pause_and_the_others_go_on() -> None:
    ground = Ground(free=3)
    receipts = running(ground, 3)
    locked, second, third = ground.backend.held
    ground.store.locked.add(locked.job)
    ground.backend.end(locked)
    ground.backend.end(second)
    pauses = [asyncio.run(ground.finalizer.run_once())]
    assert ground.states(receipts) == ["running", "succeeded", "running"]
    assert asyncio.run(ground.finalizer.run_once()) == pauses[0], "nothing shortens the pause"
    ground.backend.end(third)
    asyncio.run(ground.finalizer.run_once())
    assert ground.states(receipts) == ["running", "succeeded", "succeeded"]
    for _ in range(6):
        ground.clock.advance_ms(1_000)
        pauses.append(asyncio.run(ground.finalizer.run_once()))
    assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    assert len(ground.registry) == 1, "its ticket is held"
    ground.store.locked.clear()
    ground.clock.advance_ms(1_000)
    assert asyncio.run(ground.finalizer.run_once()) is None
    assert ground.states(receipts) == ["succeeded"] * 3
    assert ground.said == []


def test_a_store_that_hangs_is_an_unknown_outcome_and_the_same_end_is_written_once() -> None:
    ground = Ground(free=1, options=IMPATIENT)
    (receipt,) = running(ground, 1)
    ground.store.holds_up["settle"] = never
    ground.backend.end(ground.backend.held[0], FAILED)
    asyncio.run(ground.finalizer.run_once())
    del ground.store.holds_up["settle"]
    ground.clock.advance_ms(2_000)
    asyncio.run(ground.finalizer.run_once())
    assert ground.store.calls == ["claim", "settle", "settle"]
    assert (ground.tally.retried, ground.tally.lost, len(ground.registry)) == (1, 0, 0)
    assert len(ground.job(receipt).attempts) == 1


def test_when_other_calls_are_answered_again_the_longest_pause_is_a_second() -> None:
    ground = Ground(free=2)
    (receipt,) = running(ground, 1)
    away = StoreUnavailable("store_unavailable", "away")
    ground.store.fails[EVERY] = away
    ground.backend.end(ground.backend.held[0])
    for _ in range(6):
        asyncio.run(ground.finalizer.run_once())
        ground.clock.advance_ms(60_000)
    asyncio.run(ground.finalizer.run_once())
    with pytest.raises(StoreUnavailable):
        asyncio.run(ground.heartbeat.run_once())
    del ground.store.fails[EVERY]
    ground.clock.advance_ms(1_000)
    pause_s = asyncio.run(ground.finalizer.run_once())
    assert pause_s is not None
    assert pause_s > 20, "it does not know yet that the store is back"
    asyncio.run(ground.heartbeat.run_once())
    asyncio.run(ground.finalizer.run_once())
    assert ground.job(receipt).state == "succeeded"


def test_a_store_that_refuses_settlements_alone_is_not_asked_more_often() -> None:
    ground = Ground(free=2)
    running(ground, 1)
    ground.store.fails["settle"] = StoreUnavailable("store_unavailable", "not this")
    ground.backend.end(ground.backend.held[0])
    for _ in range(6):
        asyncio.run(ground.finalizer.run_once())
        ground.clock.advance_ms(60_000)
    asyncio.run(ground.finalizer.run_once())
    asyncio.run(ground.heartbeat.run_once())
    ground.clock.advance_ms(1_000)
    pause_s = asyncio.run(ground.finalizer.run_once())
    assert pause_s is not None
    assert pause_s > 20


def test_settlements_refused_in_maintenance_go_on_as_failed_writes() -> None:
    ground = Ground(free=1)
    (receipt,) = running(ground, 1)
    ground.store.fails["settle"] = AdmissionClosed("admission_closed", "under maintenance")
    ground.backend.end(ground.backend.held[0])
    asyncio.run(ground.finalizer.run_once())
    ground.clock.advance_ms(70_000)
    asyncio.run(ground.watchdog.run_once())
    assert ground.heard(events.LeaseLost) == [], "a write finds out by itself whether it is still allowed"
    ground.store.fails.clear()
    asyncio.run(ground.finalizer.run_once())
    assert ground.job(receipt).state == "succeeded"
