"""The way from event loops to threads that may wait inside a database, and back.

::

    event loop                      thread of the desk
      await desk.call(task) ──queue──▶ handle([order, …])     all that waits, up to `most`
      future ◀──call_soon_threadsafe── each one's answer or error
                                       afterwards()           nobody waits for it
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")

_JOIN_S: Final = 5.0
"""How long closing waits for a thread that is inside a call."""


class Ended(NamedTuple):
    """What became of one task."""

    answer: Any = None
    error: BaseException | None = None


class Order(NamedTuple):
    """One task and who waits for it."""

    task: Any
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for it any more; then it need not be done."""
        return self.future.cancelled()


_Queue = queue.SimpleQueue["Order | None"]


class Desk(Generic[T]):
    """A few threads that handle tasks in the order of asking. They start at the first call.

    Args:
        name: of the threads.
        threads: how many.
        handle: does the tasks of some orders and says what became of each, in their order; it never raises.
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
        self._guard = threading.Lock()

    async def call(self, task: T) -> Any:
        """Have `task` done and await its answer; raises its error.

        A caller that is cancelled before its turn has come has nothing done; later the work goes on unheard.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._guard:
            if not self._threads:
                self._start()
            self._queue.put(Order(task, loop, future))
        return await future

    def close(self) -> None:
        """Let the threads finish what they are at, and end them. A later call starts new ones."""
        with self._guard:
            threads, self._threads = self._threads, []
            for _ in threads:
                self._queue.put(None)
            self._queue = queue.SimpleQueue()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(_JOIN_S)

    def _start(self) -> None:
        for number in range(1, self._size + 1):
            name = f"{self._name}-{number}"
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
            self._serve_these([order for order in orders if not order.future.cancelled()])
            del order, orders  # keep nothing of them alive while waiting
            if is_last:
                return

    def _serve_these(self, orders: Sequence[Order]) -> None:
        if not orders:
            return
        answers = zip(orders, self._handle(orders), strict=True)
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Order, Ended]]] = {}
        for order, ended in answers:
            by_loop.setdefault(order.loop, []).append((order, ended))
        for loop, told in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(_deliver, told)
        if self._afterwards is not None:
            self._afterwards()


def _deliver(told: Sequence[tuple[Order, Ended]]) -> None:
    for order, ended in told:
        if order.future.done():
            continue
        if ended.error is not None:
            order.future.set_exception(ended.error)
        else:
            order.future.set_result(ended.answer)
