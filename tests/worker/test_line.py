"""A worker's line to its store: time limits, one telling of each trouble, the cut."""

import asyncio
import datetime

import pytest

from runwick.config.options import WorkerOptions
from runwick.contracts.errors import (
    OutcomeUnknown,
    StoreHistoryBroken,
    StoreNotInstalled,
    StoreRevisionMismatch,
    StoreUnavailable,
)
from runwick.telemetry import events
from tests.worker.ground import APPLICATION, IMPATIENT, KIND, LANE, Ground
from tests.worker.store import EVERY, never

AWAY = StoreUnavailable("store_unavailable", "away")


async def look(ground: Ground) -> None:
    await ground.parts.line.ask(ground.store.outlook(APPLICATION, [LANE], frozenset({KIND})))


async def register(ground: Ground) -> None:
    act = ground.store.register(APPLICATION, [LANE], frozenset({KIND}))
    await ground.parts.line.insist(lambda: act, budget_s=15)


def test_a_call_that_hangs_has_an_unknown_outcome() -> None:
    ground = Ground(options=IMPATIENT)
    ground.store.hangs.add(EVERY)
    with pytest.raises(OutcomeUnknown, match=r"outlook had no answer within 0\.02 s"):
        asyncio.run(look(ground))


def test_the_time_limit_of_a_call_that_is_stopped_from_outside_is_no_answer_of_the_store() -> None:
    ground = Ground()
    ground.store.hangs.add(EVERY)

    async def scenario() -> None:
        task = asyncio.create_task(look(ground))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert ground.said == []


def test_each_trouble_is_told_once_and_its_end_once() -> None:
    ground = Ground()
    ground.store.faults["outlook"] = [
        AWAY,
        StoreUnavailable("store_unavailable", "away, in other words"),
        StoreRevisionMismatch("store_revision_mismatch", "newer"),
        OSError("of the moment"),
    ]
    for _ in range(4):
        with pytest.raises((StoreUnavailable, StoreRevisionMismatch, OSError)):
            asyncio.run(look(ground))
        ground.clock.advance_ms(1_000)
    asyncio.run(look(ground))
    asyncio.run(look(ground))
    *told, over = ground.said
    assert told == [
        events.StoreCallFailed("outlook", "store_unavailable", "StoreUnavailable: store_unavailable: away"),
        events.StoreCallFailed(
            "outlook", "store_revision_mismatch", "StoreRevisionMismatch: store_revision_mismatch: newer"
        ),
        events.StoreCallFailed("outlook", "OSError", "OSError: of the moment"),
    ]
    assert (over.act, over.seconds) == ("outlook", pytest.approx(4.0))


def test_that_one_act_is_answered_says_nothing_of_another() -> None:
    ground = Ground()
    ground.store.faults["renew"] = [AWAY]
    with pytest.raises(StoreUnavailable):
        asyncio.run(ground.heartbeat.run_once())
    asyncio.run(look(ground))
    assert [type(event) for event in ground.said] == [events.StoreCallFailed]


def test_insisting_repeats_while_no_answer_comes_and_passes_a_refusal_on() -> None:
    ground = Ground(options=IMPATIENT)
    ground.store.faults["register"] = [AWAY, OutcomeUnknown("outcome_unknown", "lost"), AWAY]
    asyncio.run(register(ground))
    assert ground.store.calls == ["register"] * 4
    ground.store.faults["register"] = [StoreNotInstalled("store_not_installed", "nothing is here")]
    with pytest.raises(StoreNotInstalled):
        asyncio.run(register(ground))
    assert ground.store.calls == ["register"] * 5


def test_insisting_ends_with_its_budget() -> None:
    ground = Ground(options=WorkerOptions(control_request_timeout=datetime.timedelta(milliseconds=1)))
    ground.store.meanwhile["register"] = lambda: ground.clock.advance_ms(5_000)
    ground.store.holds_up["register"] = never
    with pytest.raises(OutcomeUnknown):
        asyncio.run(register(ground))
    assert ground.store.calls == ["register"] * 3


def test_a_cut_line_carries_nothing_more_and_is_cut_once() -> None:
    ground = Ground()
    broken = StoreHistoryBroken("store_history_broken", "it went back in time")
    ground.store.faults["outlook"] = [broken]
    for _ in range(3):
        with pytest.raises(StoreHistoryBroken):
            asyncio.run(look(ground))
    assert ground.cuts == [broken]
    assert ground.store.calls == ["outlook"]
    assert ground.said == [], "who cuts it tells it"
