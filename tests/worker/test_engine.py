import asyncio
from collections.abc import Callable
from typing import Any

from runwick.config.options import WorkerOptions
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.stores import Outlook
from runwick.runtime.ambient import SystemClock
from runwick.telemetry.bus import Bus
from runwick.worker.engine import Stop, Until, Worker, nothing_due, nothing_left
from tests.worker.backend import HandBackend
from tests.worker.ground import APPLICATION, KIND, LANE, Ground


class Life:
    """A whole worker on a store in memory and the real clock, whose runs the test ends by hand."""

    def __init__(self, *, free: int = 2, ahead: int = 0) -> None:
        self.ground = Ground()
        self.backend = HandBackend(free, ahead)
        self.worker = Worker(
            self.ground.store,
            self.backend,
            application=APPLICATION,
            lanes=[LANE],
            kinds=frozenset({KIND}),
            options=WorkerOptions(),
            clock=SystemClock(),
            dice=self.ground.dice,
            ids=self.ground.ids,
            bus=Bus(),
            executors=free,
        )

    def live(self, script: Callable[["Life"], Any], until: Until | None = None) -> Outlook | None:
        async def both() -> Outlook | None:
            run = asyncio.create_task(self.worker.run(until=until))
            await script(self)
            return await asyncio.wait_for(run, 20)

        return asyncio.run(both())

    async def handed_over(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.backend.held) < count:
                await asyncio.sleep(0.001)


def test_it_ends_when_nothing_is_left_and_says_what_waits() -> None:
    life = Life()
    receipts = life.ground.dispatch(3)

    async def script(life: Life) -> None:
        await life.handed_over(2)
        while life.backend.held:
            life.backend.end(life.backend.held[0])
        await life.handed_over(1)
        life.backend.end(life.backend.held[0])

    outlook = life.live(script, nothing_left)
    assert outlook is not None
    assert (outlook.due, outlook.leased, outlook.retrying) == (0, 0, 0)
    assert life.ground.states(receipts) == ["succeeded"] * 3
    assert life.worker.tally.succeeded == 3
    assert life.backend.started is False


def test_the_drain_lets_run_and_gives_back_what_has_not_begun() -> None:
    life = Life(free=2)
    receipts = life.ground.dispatch(4)

    async def script(life: Life) -> None:
        await life.handed_over(2)
        begun = life.backend.held[0]
        life.backend.begun.add(begun.job)
        life.worker.stop()
        async with asyncio.timeout(20):
            while len(life.backend.held) > 1:
                await asyncio.sleep(0.001)
        life.backend.end(begun)

    assert life.live(script) is None
    assert sorted(life.ground.states(receipts)) == ["pending"] * 3 + ["succeeded"]


def test_a_more_urgent_stop_interrupts_what_runs_and_settles_it() -> None:
    life = Life(free=1)
    (receipt,) = life.ground.dispatch(1)

    async def script(life: Life) -> None:
        await life.handed_over(1)
        life.backend.begun.add(life.backend.held[0].job)
        life.worker.stop_more_urgently()
        life.worker.stop_more_urgently()

    life.live(script)
    record = life.ground.job(receipt)
    assert (record.state, [a.outcome for a in record.attempts]) == ("retrying", ["interrupted"])
    assert record.due_at_ms is not None
    assert record.due_at_ms <= life.ground.clock.now_ms(), "an interrupted job need not wait"


def test_a_backend_that_gives_up_stops_the_worker_and_is_named() -> None:
    life = Life()

    async def script(life: Life) -> None:
        while not life.backend.started:
            await asyncio.sleep(0)
        life.worker.failed("no executor could be made")

    life.live(script)
    assert life.worker.failure == "no executor could be made"
    assert Stop.FORCE > Stop.DRAIN


def test_a_failing_settlement_keeps_the_worker_alive_until_it_lands() -> None:
    life = Life(free=1)
    (receipt,) = life.ground.dispatch(1)
    life.ground.store.faults["settle"] = [OSError("a fault of the moment")]

    async def script(life: Life) -> None:
        await life.handed_over(1)
        life.backend.end(life.backend.held[0], Outcome(OutcomeKind.SUCCEEDED, result=b'"done"'))

    life.live(script, nothing_due)
    assert life.ground.job(receipt).result == b'"done"'


def test_a_claim_that_is_under_way_at_the_stop_is_given_back_uncharged() -> None:
    life = Life(free=1)
    (receipt,) = life.ground.dispatch(1)
    answered = asyncio.Event()

    async def slow_to_answer() -> None:
        life.worker.stop()
        await answered.wait()

    life.ground.store.holds_up["claim"] = slow_to_answer

    async def script(life: Life) -> None:
        async with asyncio.timeout(20):
            while not life.worker._claimer.stopped:
                await asyncio.sleep(0.001)
        asyncio.get_running_loop().call_later(0.2, answered.set)

    life.live(script)
    record = life.ground.job(receipt)
    assert (record.state, record.executions) == ("pending", 0)
