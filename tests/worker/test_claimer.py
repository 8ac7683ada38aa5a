import asyncio

import pytest

from runwick.contracts.attempts import PAYLOAD_INLINE_MAX_BYTES
from runwick.contracts.errors import OutcomeUnknown, StoreUnavailable
from tests.worker.ground import Ground


def test_it_claims_as_much_as_there_is_room_for() -> None:
    ground = Ground(free=2)
    receipts = ground.dispatch(5)
    asyncio.run(ground.claimer.run_once())
    assert len(ground.backend.held) == 2
    assert sorted(ground.states(receipts)) == ["pending"] * 3 + ["running"] * 2


def test_it_claims_ahead_only_what_may_run_ahead() -> None:
    ground = Ground(free=1, ahead=10)
    ground.dispatch(3, max_executions=5)
    ground.dispatch(1, max_executions=1)
    ground.dispatch(3, max_executions=5)
    asyncio.run(ground.claimer.run_once())
    assert len(ground.backend.held) == 3, "the job with one execution waits for a free executor, and all behind it wait"


def test_a_job_that_may_not_run_ahead_is_not_asked_for_again_until_an_executor_is_free() -> None:
    ground = Ground(free=1, ahead=10)
    ground.dispatch(1, max_executions=5)
    (lone,) = ground.dispatch(1, max_executions=1)

    async def scenario() -> None:
        await ground.claimer.run_once()
        await ground.claimer.run_once()
        await ground.claimer.run_once()
        assert ground.store.calls == ["claim"]
        ground.backend.end(ground.backend.held[0])
        await ground.claimer.run_once()

    asyncio.run(scenario())
    assert [attempt.job_id for attempt in ground.backend.held] == [lone.job]


def test_without_room_it_sleeps_until_woken_and_asks_nobody() -> None:
    ground = Ground(free=0)
    ground.dispatch(1)
    assert asyncio.run(ground.claimer.run_once()) is None
    assert ground.store.calls == []


def test_an_empty_claim_is_repeated_once_after_the_hint_is_armed() -> None:
    ground = Ground()

    async def scenario() -> tuple[float | None, float | None]:
        return await ground.claimer.run_once(), await ground.claimer.run_once()

    first, second = asyncio.run(scenario())
    assert first == 0.0
    assert second is not None
    assert 1.0 <= second <= 1.1, "then it sleeps for the safety poll and a little more"


def test_it_sleeps_until_the_next_due_row_but_never_less_than_50_ms() -> None:
    ground = Ground()
    receipts = ground.dispatch(1)
    ground.store.run(ground.store.job("reports", receipts[0].job))

    async def scenario() -> float | None:
        await ground.claimer.run_once()
        ground.backend.slots = 3
        await ground.claimer.run_once()
        return await ground.claimer.run_once()

    assert asyncio.run(scenario()) == pytest.approx(1.05)


def test_a_large_payload_is_begun_when_it_is_handed_over() -> None:
    ground = Ground()
    payload = b'{"text":"' + b"x" * PAYLOAD_INLINE_MAX_BYTES + b'"}'
    (receipt,) = ground.dispatch(1, payload=payload)
    asyncio.run(ground.claimer.run_once())
    assert ground.store.calls == ["claim", "begin"]
    assert ground.backend.held[0].payload == payload
    assert (ground.job(receipt).state, ground.job(receipt).executions) == ("running", 1)


def test_a_lost_answer_is_asked_for_again_with_the_same_token() -> None:
    ground = Ground(free=2)
    receipts = ground.dispatch(2)
    ground.store.faults_after["claim"] = [OutcomeUnknown("outcome_unknown", "the answer was lost")]
    asyncio.run(ground.claimer.run_once())
    assert ground.store.calls == ["claim", "claim"]
    assert ground.states(receipts) == ["running", "running"]
    assert [attempt.number for attempt in ground.backend.held] == [1, 1]


def test_a_claim_that_was_refused_raises_and_holds_nothing() -> None:
    ground = Ground()
    ground.dispatch(1)
    ground.store.faults["claim"] = [StoreUnavailable("store_unavailable", "busy")]
    with pytest.raises(StoreUnavailable):
        asyncio.run(ground.claimer.run_once())
    assert len(ground.registry) == 0


def test_what_arrives_after_the_stop_goes_straight_back() -> None:
    ground = Ground()
    (receipt,) = ground.dispatch(1)

    async def scenario() -> None:
        ground.store.meanwhile["claim"] = ground.claimer.stop
        await ground.claimer.run_once()
        await ground.finalizer.run_once()

    asyncio.run(scenario())
    assert ground.backend.held == []
    record = ground.job(receipt)
    assert (record.state, record.executions, record.attempts) == ("pending", 0, [])


def test_too_little_of_a_lease_starts_no_handler() -> None:
    ground = Ground()
    (receipt,) = ground.dispatch(1)
    ground.store.meanwhile["claim"] = lambda: ground.clock.advance_ms(36_000)

    async def scenario() -> None:
        await ground.claimer.run_once()
        await ground.finalizer.run_once()

    asyncio.run(scenario())
    assert ground.backend.held == []
    assert ground.job(receipt).state == "pending"
