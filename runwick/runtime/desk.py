"""The way from event loops to threads that may wait inside a database, and back.

::

    event loop                      thread of the desk
      await desk.call(task) ──queue──▶ handle([order, …])     all that waits, up to `most`
                                         order.begin()        or its caller has withdrawn it
      future ◀──call_soon_threadsafe── each one's answer or error
                                       afterwards()           nobody waits for it
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from runwick.contracts.errors import OutcomeUnknown

T = TypeVar("T")

_JOIN_S: Final = 5.0
"""How long closing waits for a thread that is inside a call."""


class Ended(NamedTuple):
    """What became of one task."""

    answer: Any = None
    error: BaseException | None = None


class Order:
    """One task and who waits for it. Either a thread begins it or its caller withdraws it, never both."""

    __slots__ = ("_chance", "_is_begun", "future", "loop", "task")

    def __init__(self, task: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.task = task
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self._chance = threading.Lock()
        self._is_begun = False

    def begin(self) -> bool:
        """Said by the thread before it does the task, each time that it tries. False: its caller has withdrawn it."""
        if not self._is_begun:
            self._is_begun = self._chance.acquire(blocking=False)
        return self._is_begun

    def withdraw(self) -> bool:
        """Said by the caller that stops waiting. False: it has begun."""
        return self._chance.acquire(blocking=False)


_Queue = queue.SimpleQueue["Order | None"]


class Desk(Generic[T]):
    """A few threads that handle tasks in the order of asking. Each starts when it is first needed.

    Args:
        name: of the threads.
        threads: how many there may be.
        handle: begins some orders, does their tasks and says what became of each, in their order; of what was withdrawn
            nobody hears. It never raises.
        most: how many tasks it takes at once.
        afterwards: called on the thread when the answers are on their way.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        handle: Callable[[Sequence[Order]], Sequence[Ended]],
        *,
        most: int = 1,
        afterwards: Callable[[], None] | None = None,
    ) -> None:
        self._name = name
        self._size = threads
        self._handle = handle
        self._most = most
        self._afterwards = afterwards
        self._queue: _Queue = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._open = 0
        """Orders that wait or are being handled."""
        self._guard = threading.Lock()

    async def call(self, task: T) -> Any:
        """Have `task` done and await its answer; raises its error.

        Raises:
            asyncio.CancelledError: as ever. Before its turn has come nothing is done; later the work goes on unheard,
                which an `OutcomeUnknown` as its ``__cause__`` says (code ``cancelled_after_send``).
        """
        order = Order(task, asyncio.get_running_loop())
        with self._guard:
            self._open += 1
            if len(self._threads) < min(self._open, self._size):
                self._start_one()
            self._queue.put(order)
        try:
            return await order.future
        except asyncio.CancelledError as cancelled:
            if order.withdraw():
                raise
            raise cancelled from OutcomeUnknown(
                "cancelled_after_send",
                "the call was cancelled when the store was already at it: it may or may not be applied",
            )

    def close(self) -> None:
        """Let the threads finish what they are at, and end them. A later call starts new ones."""
        with self._guard:
            threads, self._threads = self._threads, []
            for _ in threads:
                self._queue.put(None)
            self._queue, self._open = queue.SimpleQueue(), 0
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(_JOIN_S)

    def _start_one(self) -> None:
        name = f"{self._name}-{len(self._threads) + 1}"
        thread = threading.Thread(target=self._serve, args=(self._queue,), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _serve(self, waiting: _Queue) -> None:
        while (order := waiting.get()) is not None:
            orders, is_last = [order], False
            while len(orders) < self._most and not is_last:
                try:
                    another = waiting.get_nowait()
                except queue.Empty:
                    break
                if another is None:
                    is_last = True
                else:
                    orders.append(another)
            ended = self._handle_some([order for order in orders if not order.future.cancelled()])
            with self._guard:
                if waiting is self._queue:
                    self._open -= len(orders)
            _tell(ended)
            if self._afterwards is not None and ended:
                self._afterwards()
            del order, orders, ended  # keep nothing of them alive while waiting
            if is_last:
                return

    def _handle_some(self, orders: Sequence[Order]) -> Sequence[tuple[Order, Ended]]:
        return list(zip(orders, self._handle(orders), strict=True)) if orders else []


def _tell(answers: Sequence[tuple[Order, Ended]]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Order, Ended]]] = {}
    for order, ended in answers:
        by_loop.setdefault(order.loop, []).append((order, ended))
    for loop, told in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_deliver, told)


def _deliver(told: Sequence[tuple[Order, Ended]]) -> None:
    for order, ended in told:
        if order.future.done():
            continue
        if ended.error is not None:
            order.future.set_exception(ended.error)
        else:
            order.future.set_result(ended.answer)
