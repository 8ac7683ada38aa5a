"""A store that is not the one it was: nothing that a worker holds is known to be its own, and nothing is written."""

import asyncio

import pytest

from runwick.contracts.errors import StoreHistoryBroken
from runwick.telemetry import events
from runwick.worker.engine import Until, nothing_left
from tests.worker.ground import OTHER_LANE
from tests.worker.life import QUICK, Life, until
from tests.worker.store import EVERY, never

BROKEN = StoreHistoryBroken("store_identity_mismatch", "this is another store")
ACTS = ["claim", "settle", "renew", "release", "recover"]


@pytest.mark.parametrize("act", ACTS)
def test_whatever_meets_it_first_the_worker_stops_its_runs_and_writes_nothing_more(act: str) -> None:
    life = Life(free=3, options=QUICK)
    first, second, third = life.dispatch(3)
    calls: list[str] = []

    async def script(life: Life) -> None:
        await life.handed_over(3)
        one, two, three = life.backend.held
        life.store.fails[act] = BROKEN
        if act == "settle":
            life.backend.end(one)
        if act == "release":
            life.backend.held.remove(two)
            assert life.backend.sink is not None
            life.backend.sink.unstarted([two])
        if act == "claim":
            life.backend.slots = 4
            assert life.backend.sink is not None
            life.backend.sink.room_changed()
        if act == "recover":
            life.worker._parts.recovery.due()
        await until(lambda: life.heard(events.HistoryBroken), "the break to be told")
        life.store.fails.clear()
        calls.extend(life.store.calls)
        assert {attempt.job for attempt in life.backend.stopped_runs} >= {three.job}
        for attempt in list(life.backend.held):
            life.backend.end(attempt)
        life.dispatch(1)
        await asyncio.sleep(0)
        assert life.worker.failure is not None

    with pytest.raises(StoreHistoryBroken) as ended:
        life.live(script)
    assert ended.value is BROKEN
    assert life.store.calls == calls, "nothing was sent after the break, not even a good-bye"
    assert life.states([first, second, third]) == ["running"] * 3
    assert [event.leases for event in life.heard(events.HistoryBroken)] == [3]
    assert life.heard(events.LeaseLost) == []
    assert life.worker.tally.lost == 3
    assert life.worker.failure == "store_identity_mismatch: this is another store"


@pytest.mark.parametrize("ends_by_itself", [nothing_left, None])
def test_it_ends_without_being_told_to(ends_by_itself: Until | None) -> None:
    life = Life(options=QUICK)
    life.backend.ends_when_hurried = True

    async def script(life: Life) -> None:
        life.dispatch(1)
        await life.handed_over(1)
        life.store.fails[EVERY] = BROKEN

    with pytest.raises(StoreHistoryBroken):
        life.live(script, ends_by_itself)
    assert not life.backend.started
    assert len(life.said) == 1, "it is told once, whoever meets it afterwards"


def test_a_claim_that_is_answered_after_the_break_is_not_held() -> None:
    life = Life(options=QUICK, lanes=[[], [OTHER_LANE]])
    (receipt,) = life.dispatch(1, lane=OTHER_LANE)
    answers = asyncio.Event()
    life.store.holds_up["claim"] = lambda: _answered(answers)

    async def script(life: Life) -> None:
        await until(lambda: life.job(receipt).state == "running", "the claim")
        life.store.fails["renew"] = BROKEN
        await until(lambda: life.heard(events.HistoryBroken), "the break to be told")
        answers.set()

    with pytest.raises(StoreHistoryBroken):
        life.live(script)
    assert life.backends[1].held == []
    assert life.job(receipt).state == "running"


async def _answered(answers: asyncio.Event) -> None:
    await answers.wait()


def test_a_store_that_is_another_one_at_the_start_lets_nothing_start() -> None:
    life = Life(options=QUICK)
    life.store.fails["register"] = BROKEN
    life.store.holds_up["depart"] = never
    with pytest.raises(StoreHistoryBroken):
        asyncio.run(life.worker.run())
    assert not life.backend.started
