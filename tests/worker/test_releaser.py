import asyncio

import pytest

from runwick.contracts.dispatching import Receipt
from runwick.contracts.errors import OutcomeUnknown, StoreUnavailable
from runwick.telemetry import events
from tests.worker.ground import Ground


def taken_back(ground: Ground, count: int) -> list[Receipt]:
    """So many jobs that were claimed, handed over and taken back."""
    receipts = ground.dispatch(count)
    asyncio.run(ground.claimer.run_once())
    ground.releaser.release(ground.backend.take_back())
    return receipts


def test_releases_take_the_charge_back() -> None:
    ground = Ground(free=2)
    receipts = taken_back(ground, 2)
    asyncio.run(ground.releaser.run_once())
    for receipt in receipts:
        record = ground.job(receipt)
        assert (record.state, record.executions, record.attempts) == ("pending", 0, [])
    assert len(ground.registry) == 0
    assert ground.tally.released == 2


def test_a_release_after_the_lease_had_gone_is_no_release() -> None:
    ground = Ground(free=1)
    (receipt,) = taken_back(ground, 1)
    ground.clock.advance_ms(61_000)
    ground.recovery.due()
    asyncio.run(ground.recovery.run_once())
    asyncio.run(ground.releaser.run_once())
    assert ground.job(receipt).state == "retrying"
    assert len(ground.registry) == 0
    assert (ground.tally.released, ground.tally.lost) == (0, 1)


def test_a_release_whose_answer_was_lost_is_sent_again_and_no_lease_counts_as_lost() -> None:
    ground = Ground(free=2)
    receipts = taken_back(ground, 2)
    ground.store.faults_after["release"] = [OutcomeUnknown("outcome_unknown", "the answer was lost")]
    assert asyncio.run(ground.releaser.run_once()) == pytest.approx(1.0)
    ground.clock.advance_ms(2_000)
    asyncio.run(ground.releaser.run_once())
    assert ground.states(receipts) == ["pending", "pending"]
    assert (ground.tally.released, ground.tally.lost, len(ground.registry)) == (2, 0, 0)


def test_a_locked_row_holds_up_no_other_and_is_given_back_later() -> None:
    ground = Ground(free=2)
    receipts = taken_back(ground, 2)
    held = {entry.job for entry in ground.registry.held()}
    ground.store.locked.add(min(held))
    assert asyncio.run(ground.releaser.run_once()) == pytest.approx(0.05)
    assert sorted(ground.states(receipts)) == ["pending", "running"]
    ground.store.locked.clear()
    ground.clock.advance_ms(50)
    assert asyncio.run(ground.releaser.run_once()) is None
    assert ground.states(receipts) == ["pending", "pending"]


def test_a_release_that_cannot_be_written_holds_up_no_result() -> None:
    ground = Ground(free=2)
    first, second = ground.dispatch(2)
    asyncio.run(ground.claimer.run_once())
    begun, waiting = ground.backend.held
    ground.store.fails["release"] = StoreUnavailable("store_unavailable", "away")
    ground.releaser.release([waiting])
    ground.backend.end(begun)
    asyncio.run(ground.releaser.run_once())
    asyncio.run(ground.finalizer.run_once())
    assert ground.states([first, second]) == ["succeeded", "running"]
    pause_s = asyncio.run(ground.releaser.run_once())
    assert pause_s is not None
    assert ground.store.calls.count("release") == 1, "no wake-up shortens the pause"
    ground.store.fails.clear()
    ground.clock.advance_ms(2_000)
    asyncio.run(ground.releaser.run_once())
    assert ground.states([first, second]) == ["succeeded", "pending"]
    assert len(ground.heard(events.StoreCallFailed)) == len(ground.heard(events.StoreCallAnswered)) == 1


def test_nothing_is_written_for_a_lease_that_was_lost_here() -> None:
    ground = Ground(free=1)
    (receipt,) = ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    ground.clock.advance_ms(51_000)
    asyncio.run(ground.watchdog.run_once())
    ground.releaser.release(ground.backend.take_back())
    asyncio.run(ground.releaser.run_once())
    assert ground.store.calls == ["claim"]
    assert (ground.job(receipt).state, len(ground.registry)) == ("running", 0)
