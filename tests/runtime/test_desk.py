"""The desk: tasks are done in the order of asking, and whoever stops waiting hears whether one had begun."""

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest

from runwick.contracts.errors import OutcomeUnknown
from runwick.runtime.desk import Desk, Ended, Order

DEADLINE_S = 30.0


class Work:
    """Notes what was done; can be made to stand still inside of a task."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.inside = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def hold(self) -> None:
        self.inside.clear()
        self.go_on.clear()

    def handle(self, orders: Sequence[Order]) -> list[Ended]:
        return [self._do(order) if order.begin() else Ended() for order in orders]

    def _do(self, order: Order) -> Ended:
        self.inside.set()
        assert self.go_on.wait(DEADLINE_S)
        self.done.append(order.task)
        return Ended(error=KeyError(order.task)) if order.task == "wrong" else Ended(order.task.upper())


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def desk(work: Work) -> Iterator[Desk[str]]:
    desk = Desk[str]("desk", 1, work.handle)
    yield desk
    desk.close()


async def inside(work: Work) -> None:
    assert await asyncio.to_thread(work.inside.wait, DEADLINE_S)


def test_answers_and_errors_come_back_to_who_asked(desk: Desk[str]) -> None:
    async def ask() -> tuple[object, object, object]:
        first, error, second = await asyncio.gather(*map(desk.call, ["a", "wrong", "b"]), return_exceptions=True)
        return first, error, second

    first, error, second = asyncio.run(ask())
    assert (first, second) == ("A", "B")
    assert isinstance(error, KeyError)


def test_a_caller_that_is_cancelled_before_its_turn_has_nothing_done(desk: Desk[str], work: Work) -> None:
    async def cancel_the_second() -> None:
        work.hold()
        first = asyncio.create_task(desk.call("first"))
        await inside(work)
        second = asyncio.create_task(desk.call("second"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await second
        assert cancelled.value.__cause__ is None
        work.go_on.set()
        assert await first == "FIRST"
        assert await desk.call("third") == "THIRD"

    asyncio.run(cancel_the_second())
    assert work.done == ["first", "third"]


def test_a_caller_that_is_cancelled_under_way_hears_that_the_outcome_is_unknown(desk: Desk[str], work: Work) -> None:
    async def cancel() -> None:
        work.hold()
        task = asyncio.create_task(desk.call("begun"))
        await inside(work)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert isinstance(cancelled.value.__cause__, OutcomeUnknown)
        assert cancelled.value.__cause__.code == "cancelled_after_send"
        work.go_on.set()
        assert await desk.call("next") == "NEXT"

    asyncio.run(cancel())
    assert work.done == ["begun", "next"]


def test_an_order_is_begun_or_withdrawn_and_never_both() -> None:
    async def orders() -> tuple[Order, Order]:
        loop = asyncio.get_running_loop()
        return Order("begun", loop), Order("withdrawn", loop)

    begun, withdrawn = asyncio.run(orders())
    assert [begun.begin(), begun.begin(), begun.withdraw()] == [True, True, False]
    assert [withdrawn.withdraw(), withdrawn.begin()] == [True, False]


def test_a_thread_starts_when_it_is_needed(work: Work) -> None:
    desk = Desk[str]("crew", 3, work.handle)

    def crew() -> int:
        return sum(thread.name.startswith("crew-") for thread in threading.enumerate())

    async def ask() -> None:
        for number in range(5):
            await desk.call(f"one by one {number}")
        assert crew() == 1
        work.hold()
        at_once = [asyncio.create_task(desk.call(f"at once {number}")) for number in range(5)]
        await inside(work)
        assert crew() == 3
        work.go_on.set()
        await asyncio.gather(*at_once)

    asyncio.run(ask())
    desk.close()
    assert crew() == 0
    assert len(work.done) == 10
