import asyncio
from typing import TypeVar

from runwick.telemetry import events
from tests.worker.ground import Ground

T = TypeVar("T")


def test_a_renewal_keeps_the_lease_and_re_arms_the_deadline() -> None:
    ground = Ground(free=1)
    (receipt,) = ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    for _ in range(10):
        ground.clock.advance_ms(15_000)
        asyncio.run(ground.heartbeat.run_once())
        ground.recovery.due()
        asyncio.run(ground.recovery.run_once())
    assert ground.said == []
    assert ground.job(receipt).state == "running"
    assert ground.backend.stopped_runs == []


def test_a_lease_that_was_not_renewed_is_lost_before_the_store_gives_it_away() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    ground.clock.advance_ms(49_000)
    asyncio.run(ground.watchdog.run_once())
    assert ground.backend.stopped_runs == []
    ground.clock.advance_ms(1_000)
    assert asyncio.run(ground.watchdog.run_once()) == 1.0
    assert ground.backend.stopped_runs == ground.backend.held


def test_a_lease_that_the_store_gave_away_is_stopped_here() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)
    asyncio.run(ground.heartbeat.run_once())
    asyncio.run(ground.claimer.run_once())
    (attempt,) = ground.backend.held
    ground.clock.advance_ms(61_000)
    ground.recovery.due()
    asyncio.run(ground.recovery.run_once())
    asyncio.run(ground.heartbeat.run_once())
    assert ground.backend.stopped_runs == [attempt]
    assert [type(event) for event in ground.said] == [events.Recovered, events.LeaseLost]


def test_of_several_workers_one_is_let_through_to_recover() -> None:
    ground = Ground()
    due: list[str] = []
    first, second = ground.heartbeat, Ground().heartbeat
    second._store = ground.store
    first._recovery_due = lambda: due.append("first")
    second._recovery_due = lambda: due.append("second")
    asyncio.run(first.run_once())
    asyncio.run(second.run_once())
    assert due == ["first"]


def test_it_scans_between_renewals_without_renewing() -> None:
    ground = Ground(free=1)
    asyncio.run(ground.heartbeat.run_once())
    ground.clock.advance_ms(5_000)
    asyncio.run(ground.heartbeat.run_once())
    ground.clock.advance_ms(1_000)
    asyncio.run(ground.heartbeat.run_once())
    assert ground.store.calls == ["renew", "renew"]


def test_a_lease_is_lost_in_time_while_a_renewal_hangs() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)

    async def hang(asked: asyncio.Event) -> None:
        asked.set()
        await asyncio.Event().wait()

    async def scenario() -> None:
        await ground.claimer.run_once()
        asked = asyncio.Event()

        ground.store.holds_up["renew"] = lambda: hang(asked)
        renewal = asyncio.create_task(ground.heartbeat.run_once())
        await asked.wait()
        ground.clock.advance_ms(50_000)
        await ground.watchdog.run_once()
        assert not renewal.done()
        assert ground.backend.stopped_runs == ground.backend.held
        renewal.cancel()

    asyncio.run(scenario())
