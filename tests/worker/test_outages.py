"""A store that comes and goes: every loop goes on by itself within seconds, whatever the others met."""

import functools

import pytest

from runwick.contracts.errors import OutcomeUnknown, StoreUnavailable
from runwick.telemetry import events
from runwick.worker import pauses
from runwick.worker.engine import nothing_left
from tests.worker.ground import LANE, OTHER_LANE
from tests.worker.life import QUICK, Life, until
from tests.worker.store import EVERY

AWAY = StoreUnavailable("store_unavailable", "away")
ACTS = ("claim", "renew", "settle", "release", "recover")
"""One of each loop that calls the store."""


@pytest.fixture(autouse=True)
def quick_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "WRITE_REPEAT_FIRST_S", 0.02)


def cut(life: Life, how: str) -> None:
    """Let every call fail from now on."""
    if how == "hangs":
        life.store.hangs.add(EVERY)
    else:
        life.store.fails[EVERY] = {
            "refuses": AWAY,
            "raises": OSError("connection reset"),
            "loses": OutcomeUnknown("outcome_unknown", "lost"),
        }[how]


def mend(life: Life) -> None:
    life.store.hangs.clear()
    life.store.fails.clear()


def _more_renewals(life: Life, seen: int) -> bool:
    return life.store.calls.count("renew") > seen


async def every_loop_calls(life: Life) -> None:
    """Wait until each loop has been heard again, each by its own call."""
    seen = len(life.store.calls)
    life.worker._parts.recovery.due()
    (attempt,) = life.backend.held
    life.backend.end(attempt)  # settle
    await life.handed_over(1)  # claim
    (attempt,) = life.backend.held
    life.backend.held.remove(attempt)
    assert life.backend.sink is not None
    life.backend.sink.unstarted([attempt])  # release
    life.backend.sink.room_changed()
    await until(lambda: set(ACTS) <= set(life.store.calls[seen:]), "every loop")
    await life.handed_over(1)


@pytest.mark.parametrize("how", ["hangs", "refuses", "raises", "loses"])
@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_f065_f068_five_cuts_in_a_row_end_no_loop(how: str, busy: bool) -> None:
    life = Life(free=1, options=QUICK)
    receipts = life.dispatch(3) if busy else []

    async def script(life: Life) -> None:
        await until(lambda: "claim" in life.store.calls, "a claim")
        if busy:
            await life.handed_over(1)
        for _ in range(5):
            cut(life, how)
            seen = life.store.calls.count("renew")
            await until(functools.partial(_more_renewals, life, seen), "a call that fails")
            mend(life)
        if not busy:
            receipts.extend(life.dispatch(3))
            await life.handed_over(1)
        await every_loop_calls(life)
        for _ in range(2):
            await life.handed_over(1)
            life.backend.end(life.backend.held[0])
        await until(lambda: life.states(receipts) == ["succeeded"] * 3, "the jobs to end")
        life.worker.stop()

    life.live(script)
    assert life.worker.tally.lost == 0
    told = [event.act for event in life.heard(events.StoreCallFailed)]
    over = [event.act for event in life.heard(events.StoreCallAnswered)]
    assert sorted(told) == sorted(over), "each outage is told, and its end"


@pytest.mark.parametrize("act", ACTS)
def test_one_act_that_hangs_stops_no_other_loop(act: str) -> None:
    life = Life(free=1, lanes=[[LANE], [OTHER_LANE]], options=QUICK)
    life.dispatch(1)

    async def script(life: Life) -> None:
        await life.handed_over(1)
        life.store.hangs.add(act)
        life.worker._parts.recovery.due()
        if act == "claim":
            life.dispatch(1, lane=OTHER_LANE)
        (attempt,) = life.backend.held
        life.backend.held.remove(attempt)
        assert life.backend.sink is not None
        if act == "release":
            life.backend.sink.unstarted([attempt])
        else:
            life.backend.held.append(attempt)
            life.backend.end(attempt)
        await until(lambda: life.store.calls.count(act) >= 2, "the act to be given up and repeated")
        others = {"claim", "renew"} - {act}
        seen = len(life.store.calls)
        await until(lambda: others <= set(life.store.calls[seen:]), "the other loops")
        life.store.hangs.clear()
        await until(lambda: not life.worker._parts.registry.held() or life.backend.held, "what was held up")
        life.worker.stop()

    life.live(script)
    assert [event.act for event in life.heard(events.StoreCallFailed)] == [act]


ERRORS = [
    StoreUnavailable("store_unavailable", "could not serialize access (40001)"),
    StoreUnavailable("store_unavailable", "deadlock detected (40P01)"),
    OutcomeUnknown("outcome_unknown", "terminating connection (57P01)"),
    RuntimeError("a fault of a driver"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: str(error)[-6:-1])
def test_f071_one_error_of_the_moment_in_every_call_ends_nothing(error: Exception) -> None:
    life = Life(free=2, options=QUICK)
    receipts = life.dispatch(4)
    for act in (*ACTS, "outlook", "depart"):
        life.store.faults[act] = [error]
    if not isinstance(error, RuntimeError):
        life.store.faults["register"] = [error]

    async def script(life: Life) -> None:
        for _ in range(4):
            await life.handed_over(1)
            life.backend.end(life.backend.held[0])

    life.live(script, nothing_left)
    assert life.states(receipts) == ["succeeded"] * 4
    assert life.heard(events.LoopFailed) == [], "a call that failed is told as such"
