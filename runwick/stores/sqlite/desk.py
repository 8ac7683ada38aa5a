"""The way from an event loop to threads that may wait inside SQLite, and back.

::

    event loop                      thread of the desk
      await desk.call(work) ──queue──▶ work()
      future ◀──call_soon_threadsafe── its answer or error
                                       afterwards()          nobody waits for it
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

_JOIN_S: Final = 5.0
"""How long closing waits for a thread that is inside a call."""


class _Order(NamedTuple):
    work: Callable[[], Any]
    afterwards: Callable[[], None] | None
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"


_Queue = queue.SimpleQueue["_Order | None"]


class Desk:
    """A few threads that do one thing at a time each, in the order of asking. They start at the first call."""

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._size = threads
        self._queue: _Queue = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._guard = threading.Lock()

    async def call(self, work: Callable[[], T], afterwards: Callable[[], None] | None = None) -> T:
        """Have `work` done and await its answer; `afterwards` follows on the same thread, once that is on its way.

        A caller that is cancelled before its turn has come has nothing done; later the work goes on unheard.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._guard:
            if not self._threads:
                self._start()
            self._queue.put(_Order(work, afterwards, loop, future))
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
            thread = threading.Thread(target=_serve, args=(self._queue,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)


def _serve(orders: _Queue) -> None:
    while (order := orders.get()) is not None:
        if not order.future.cancelled():
            _serve_one(order)
        del order  # keep nothing of it alive while waiting


def _serve_one(order: _Order) -> None:
    try:
        answer = order.work()
    except BaseException as error:  # also what stops a thread belongs to the caller
        _tell(order, order.future.set_exception, error)
    else:
        _tell(order, order.future.set_result, answer)
    if order.afterwards is not None:
        order.afterwards()


def _tell(order: _Order, fulfil: Callable[[Any], None], value: Any) -> None:
    def deliver() -> None:
        if not order.future.done():
            fulfil(value)

    with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
        order.loop.call_soon_threadsafe(deliver)
