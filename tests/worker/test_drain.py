"""How runs end when their worker stops: let run, asked, killed; what is known is settled."""

import asyncio
import dataclasses

import pytest

from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.dispatching import Receipt
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.telemetry import events
from runwick.worker.drain import Stop
from tests.worker.life import QUICK, Life, milliseconds, until

SHUTDOWN = CancellationCause.SHUTDOWN
HOUR = milliseconds(3_600_000)
PATIENT = dataclasses.replace(
    QUICK,
    shutdown_drain=HOUR,
    shutdown_cancellation=HOUR,
    shutdown_budget=3 * HOUR,
    cancellation_grace=milliseconds(7_000),
)
"""Nothing but a more urgent stop ends a step of its drain."""


async def one_begun(life: Life) -> None:
    await life.handed_over(1)
    life.backend.begun.add(life.backend.held[0].job)


def asked(life: Life) -> list[float]:
    """Within what times all was asked to stop for the end of the worker."""
    return [within_s for _, cause, within_s in life.backend.asked if cause is SHUTDOWN]


def check_interrupted(life: Life, receipt: Receipt) -> None:
    record = life.job(receipt)
    assert (record.state, [attempt.outcome for attempt in record.attempts]) == ("retrying", ["interrupted"])
    assert record.due_at_ms is not None
    assert record.due_at_ms <= life.clock.now_ms(), "an interrupted job need not wait"


def test_a_second_stop_asks_what_runs_and_gives_it_its_grace() -> None:
    life = Life(free=1, options=PATIENT)
    (receipt,) = life.dispatch(1)

    async def script(life: Life) -> None:
        await one_begun(life)
        life.worker.stop_more_urgently()
        await until(lambda: life.worker._parts.finalizer.draining, "the drain")
        assert asked(life) == []
        life.worker.stop_more_urgently()

    life.live(script)
    assert asked(life) == [7.0]
    check_interrupted(life, receipt)


@pytest.mark.parametrize("forced", [False, True], ids=["out of time", "by force"])
def test_backends_that_do_not_end_are_hurried(forced: bool) -> None:
    """When the budget is over, or at once for a stop by force."""
    options = dataclasses.replace(
        QUICK,
        shutdown_drain=milliseconds(10),
        shutdown_cancellation=milliseconds(10),
        shutdown_finalization=milliseconds(10),
        shutdown_budget=HOUR if forced else milliseconds(200),
    )
    life = Life(free=1, options=options)
    life.backend.ends_when_hurried = True

    async def script(life: Life) -> None:
        life.worker.stop()
        if forced:
            await until(lambda: not life.backend.started, "the end of the backend")
            life.worker.stop(Stop.KILL)

    life.live(script)
    assert life.backend.hurried.is_set()


def test_a_third_stop_kills_what_does_not_heed() -> None:
    life = Life(free=1, options=PATIENT)
    (receipt,) = life.dispatch(1)
    life.backend.deaf = True

    async def script(life: Life) -> None:
        await one_begun(life)
        life.worker.stop_more_urgently()
        life.worker.stop_more_urgently()
        await until(lambda: asked(life), "what runs to be asked")
        assert life.backend.held
        life.worker.stop_more_urgently()

    life.live(script)
    assert asked(life) == [7.0, 0.0]
    check_interrupted(life, receipt)


def test_the_end_of_what_was_killed_is_waited_for_and_settled() -> None:
    life = Life(free=1, options=PATIENT)
    (receipt,) = life.dispatch(1)
    killed = asyncio.Event()

    def dies_slowly(attempts: object, cause: CancellationCause, within_s: float) -> None:
        if within_s <= 0:
            killed.set()

    life.backend.ask = dies_slowly  # type: ignore[method-assign]

    async def script(life: Life) -> None:
        await one_begun(life)
        life.worker.stop(Stop.KILL)
        await killed.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        life.backend.end(life.backend.held[0], Outcome(OutcomeKind.INTERRUPTED, "worker_stopping"))

    life.live(script)
    check_interrupted(life, receipt)


def test_a_fourth_stop_changes_nothing() -> None:
    life = Life()
    for urgency in (Stop.DRAIN, Stop.CANCEL, Stop.KILL, Stop.KILL):
        life.worker.stop_more_urgently()
        assert life.worker._stop is urgency


def test_without_a_second_stop_each_step_has_its_time() -> None:
    options = dataclasses.replace(
        PATIENT,
        shutdown_drain=milliseconds(20),
        shutdown_cancellation=milliseconds(40),
        shutdown_finalization=milliseconds(5_000),
    )
    life = Life(free=1, options=options)
    (receipt,) = life.dispatch(1)
    life.backend.deaf = True

    async def script(life: Life) -> None:
        await one_begun(life)
        life.worker.stop()

    life.live(script)
    grace_s, killed_s = asked(life)
    assert 0 < grace_s <= 0.04, "no more than what the slice leaves"
    assert killed_s == 0.0
    check_interrupted(life, receipt)


def test_cancels_are_obeyed_while_it_drains() -> None:
    life = Life(free=1, options=PATIENT)
    (receipt,) = life.dispatch(1)

    async def script(life: Life) -> None:
        await one_begun(life)
        life.worker.stop()
        await until(lambda: life.worker._parts.finalizer.draining, "the drain")
        life.control(receipt)
        await until(lambda: life.backend.asked, "the run to be asked")
        life.backend.end(life.backend.held[0], Outcome(OutcomeKind.CANCELLED, "cancel_requested"))

    life.live(script)
    assert [cause for _, cause, _ in life.backend.asked] == [CancellationCause.USER_REQUESTED]
    assert life.states([receipt]) == ["cancelled"]


@pytest.mark.parametrize("urgency", [Stop.DRAIN, Stop.CANCEL, Stop.KILL])
def test_what_cannot_be_stopped_is_let_go_and_keeps_nobody(urgency: Stop) -> None:
    options = dataclasses.replace(QUICK, shutdown_drain=milliseconds(20), shutdown_cancellation=milliseconds(20))
    life = Life(free=1, options=options)
    (receipt,) = life.dispatch(1)

    def gives_up(attempts: object, cause: CancellationCause, within_s: float) -> None:
        if within_s <= 0:
            assert life.backend.sink is not None
            life.backend.sink.gave_up(list(life.backend.held))

    life.backend.ask = gives_up  # type: ignore[method-assign]

    async def script(life: Life) -> None:
        await one_begun(life)
        life.worker.stop(urgency)

    life.live(script)
    assert life.states([receipt]) == ["running"], "its lease runs out"
    assert [event.reason for event in life.heard(events.LeaseLost)] == [
        "its run goes on although it was asked to stop, and nothing here can end it"
    ]
