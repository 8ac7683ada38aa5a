"""Who stops waiting for a dispatch: what was sent is told, what was not sent never was."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from runwick import DispatchOutcomeUnknown, Prepared, ProducerOptions, Receipt, Runwick
from tests.dispatch.jobs import Report, application, stored, when_applied

DEADLINE_S = 20.0


@pytest.fixture
def rw(store_url: str) -> Iterator[Runwick]:
    """Has dispatched one job, so that the next one is a single statement."""
    app = application(store_url, producer=ProducerOptions(max_concurrent_calls=2))
    app.dispatch(Report("April"))
    yield app
    app.close()


@contextmanager
def stopped_when_applied(rw: Runwick) -> Iterator[threading.Event]:
    """Hold the store's threads where they have applied a call and not answered; the event says that one is there."""
    there, go_on = threading.Event(), threading.Event()

    def stop() -> None:
        there.set()
        assert go_on.wait(DEADLINE_S)

    with when_applied(rw, stop):
        try:
            yield there
        finally:
            go_on.set()


@asynccontextmanager
async def one_under_way(rw: Runwick) -> AsyncIterator["asyncio.Task[Receipt]"]:
    """A dispatch that has been applied and not answered."""
    with stopped_when_applied(rw) as there:
        task = asyncio.create_task(rw.dispatch_async(Report("May")))
        assert await asyncio.to_thread(there.wait, DEADLINE_S)
        yield task


async def cancelled(task: "asyncio.Task[Receipt]") -> asyncio.CancelledError:
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return caught.value


def settled(rw: Runwick, unknown: BaseException | None) -> Receipt:
    """Send again what a cancelled dispatch left."""
    assert isinstance(unknown, DispatchOutcomeUnknown)
    assert unknown.code == "cancelled_after_send"
    assert "its caller stopped waiting for the answer" in unknown.message
    assert isinstance(unknown.prepared, Prepared)
    return rw.dispatch_prepared(unknown.prepared)


def test_after_it_was_sent_the_cause_holds_the_request(rw: Runwick) -> None:
    async def dispatch() -> BaseException | None:
        async with one_under_way(rw) as task:
            return (await cancelled(task)).__cause__

    receipt = settled(rw, asyncio.run(dispatch()))
    assert rw.get(receipt).job_id == receipt.job_id
    assert stored(rw) == 2


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # where one thread writes, others' calls wait for it
def test_before_it_was_sent_there_is_no_cause_and_no_job(rw: Runwick) -> None:
    async def dispatch() -> BaseException | None:
        async with one_under_way(rw) as first:
            behind = asyncio.create_task(rw.dispatch_async(Report("June")))
            await asyncio.sleep(0)
            stopped = await cancelled(behind)
        await first
        return stopped.__cause__

    assert asyncio.run(dispatch()) is None
    assert stored(rw) == 2


def test_whoever_waits_for_a_turn_has_sent_nothing(rw: Runwick) -> None:
    async def dispatch() -> BaseException | None:
        async with one_under_way(rw) as first:
            second = asyncio.create_task(rw.dispatch_async(Report("June")))
            third = asyncio.create_task(rw.dispatch_async(Report("July")))
            await asyncio.sleep(0)
            stopped = await cancelled(third)
        await asyncio.gather(first, second)
        return stopped.__cause__

    assert asyncio.run(dispatch()) is None
    assert stored(rw) == 3


def test_a_cancelled_call_gives_its_turn_back(rw: Runwick) -> None:
    async def dispatch() -> None:
        async with one_under_way(rw) as first:
            second = asyncio.create_task(rw.dispatch_async(Report("June")))
            third = asyncio.create_task(rw.dispatch_async(Report("July")))
            await asyncio.sleep(0)
            await cancelled(first)
        await asyncio.gather(second, third)

    asyncio.run(dispatch())
    assert stored(rw) == 4


def test_a_time_limit_keeps_the_cause(rw: Runwick) -> None:
    async def limited() -> None:
        async with one_under_way(rw) as task, asyncio.timeout(0):
            await task

    async def waited_for() -> None:
        async with one_under_way(rw) as task:
            await asyncio.wait_for(task, 0)

    for dispatch in (limited, waited_for):
        with pytest.raises(TimeoutError) as late:
            asyncio.run(dispatch())
        assert isinstance(late.value.__cause__, asyncio.CancelledError)
        settled(rw, late.value.__cause__.__cause__)
    assert stored(rw) == 3


def test_a_batch_is_told_like_one(rw: Runwick) -> None:
    async def dispatch() -> BaseException | None:
        with stopped_when_applied(rw) as there:
            task = asyncio.create_task(rw.dispatch_many_async([Report("May"), Report("June")]))
            assert await asyncio.to_thread(there.wait, DEADLINE_S)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            return caught.value.__cause__

    unknown = asyncio.run(dispatch())
    assert isinstance(unknown, DispatchOutcomeUnknown)
    assert unknown.prepared is not None
    rw.dispatch_prepared(unknown.prepared)
    assert stored(rw) == 3
