"""Pools and kinds that change while the worker runs: what stays goes on, what is new begins, what leaves ends first."""

import asyncio

import msgspec
import pytest

from runwick.contracts.attempts import Kind
from runwick.contracts.errors import ConfigurationError, InvalidArgument, Problem, StoreUnavailable
from runwick.worker.pools import ServedPool
from tests.worker.backend import HandBackend
from tests.worker.ground import KIND, LANE, OTHER_LANE
from tests.worker.life import QUICK, Life, until

KINDS = frozenset({KIND})


def new_pool(size: int = 1) -> ServedPool:
    return ServedPool("mails", HandBackend(free=size), {OTHER_LANE.queue: 1}, size)


def backend_of(pool: ServedPool) -> HandBackend:
    assert isinstance(pool.backend, HandBackend)
    return pool.backend


def test_a_pool_that_is_added_takes_its_work_and_the_other_goes_on() -> None:
    life = Life(free=1, options=QUICK)
    (report,) = life.dispatch(1)
    (mail,) = life.dispatch(1, lane=OTHER_LANE)
    added = new_pool()

    async def script(life: Life) -> None:
        await life.handed_over(1)
        await life.worker.reconfigure([*life.pools, added], KINDS)
        await until(lambda: backend_of(added).held, "the mail")
        assert len(life.backend.held) == 1
        presence = life.worker._parts.presence
        assert (presence.queues, presence.executors) == (["mails", "reports"], 2)
        for backend in (life.backend, backend_of(added)):
            backend.end(backend.held[0])
        await until(lambda: life.states([report, mail]) == ["succeeded"] * 2, "both ends")
        life.worker.stop()

    life.live(script)
    assert not life.backend.started
    assert not backend_of(added).started


def test_a_pool_that_is_taken_away_claims_nothing_more_and_leaves_when_its_runs_have_ended() -> None:
    life = Life(free=2, lanes=((LANE,), (OTHER_LANE,)), options=QUICK)
    receipts = life.dispatch(3)

    async def script(life: Life) -> None:
        leaving = life.backend
        await life.handed_over(2)
        begun = leaving.held[0]
        leaving.begun.add(begun.job)
        await life.worker.reconfigure(life.pools[1:], KINDS)
        await until(lambda: leaving.held == [begun], "the other one to be taken back")
        await until(lambda: sorted(life.states(receipts)) == ["pending", "pending", "running"], "its release")
        assert leaving.started
        assert life.worker.running == 1
        leaving.end(begun)
        await until(lambda: not leaving.started, "its departure")
        assert sorted(life.states(receipts)) == ["pending", "pending", "succeeded"]
        assert life.backends[1].started
        life.worker.stop()

    life.live(script)


def test_a_worker_that_ends_meanwhile_takes_a_leaving_pool_along() -> None:
    life = Life(free=1, lanes=((LANE,), (OTHER_LANE,)), options=QUICK)
    (receipt,) = life.dispatch(1)

    async def script(life: Life) -> None:
        await life.handed_over(1)
        life.backend.begun.add(life.backend.held[0].job)
        await life.worker.reconfigure(life.pools[1:], KINDS)
        life.worker.stop_more_urgently()
        life.worker.stop_more_urgently()

    life.live(script)
    assert life.states([receipt]) == ["retrying"]
    assert [backend.started for backend in life.backends] == [False, False]


def test_other_kinds_and_lanes_hold_for_the_next_claim() -> None:
    life = Life(free=1, options=QUICK)
    (mail,) = life.dispatch(1, lane=OTHER_LANE)

    async def script(life: Life) -> None:
        await until(lambda: "claim" in life.store.calls, "a claim")
        changed = msgspec.structs.replace(life.pools[0], queues={OTHER_LANE.queue: 1})
        await life.worker.reconfigure([changed], frozenset({Kind("another", 1)}))
        claims = life.store.calls.count("claim")
        await until(lambda: life.store.calls.count("claim") > claims + 1, "two more claims")
        assert life.backend.held == [], "it cannot decode that kind"
        await life.worker.reconfigure([changed], KINDS)
        await life.handed_over(1)
        assert life.backend.held[0].job_id == mail.job
        life.backend.end(life.backend.held[0])
        await until(lambda: life.states([mail]) == ["succeeded"], "its end")
        life.worker.stop()

    life.live(script)


def test_a_pool_that_shrinks_keeps_what_it_holds() -> None:
    life = Life(free=3, options=QUICK)
    life.dispatch(3)

    async def script(life: Life) -> None:
        await life.handed_over(3)
        (station,) = life.worker._parts.stations._serving
        await life.worker.reconfigure([msgspec.structs.replace(life.pools[0], size=1)], KINDS)
        assert (station.share.held, station.share.attempts_max) == (3, 513)
        assert life.worker._parts.presence.executors == 1
        for attempt in list(life.backend.held):
            life.backend.end(attempt)
        await until(lambda: station.share.held == 0, "the settlements")
        life.worker.stop()

    life.live(script)


def test_what_cannot_be_brought_up_changes_nothing() -> None:
    life = Life(free=1, options=QUICK)
    added, unwilling = new_pool(), new_pool()
    backend_of(unwilling).refusal = ConfigurationError([Problem("boot_timeout", "pool", "not ready in time")])

    async def script(life: Life) -> None:
        await until(lambda: life.backend.started, "the start")
        with pytest.raises(ConfigurationError):
            await life.worker.reconfigure([added, unwilling], KINDS)
        assert not backend_of(added).started
        life.store.fails["register"] = StoreUnavailable("store_unavailable", "away")
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(life.worker.reconfigure([added], KINDS), 60)
        assert not backend_of(added).started
        assert life.worker._pools.served == tuple(life.pools)
        life.worker.stop()

    options = life.worker._timings
    life.worker._timings = msgspec.structs.replace(options, claim_budget_s=0.0)
    life.live(script)


def test_one_that_stops_is_not_changed_any_more() -> None:
    life = Life(options=QUICK)
    added = new_pool()

    async def script(life: Life) -> None:
        await until(lambda: life.backend.started, "the start")
        life.store.meanwhile["register"] = life.worker.stop
        with pytest.raises(InvalidArgument, match="invalid_state"):
            await life.worker.reconfigure([*life.pools, added], KINDS)
        assert not backend_of(added).started

    life.live(script)
    with pytest.raises(InvalidArgument, match="invalid_state"):
        asyncio.run(life.worker.reconfigure([added], KINDS))
