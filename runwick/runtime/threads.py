"""Threads of our own. None of them keeps the process from ending, whatever it is at."""

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_Order = tuple["Future[Any]", Callable[[], Any]]


class Threads:
    """Up to `most` threads that call functions in the order of asking. Each starts when it is first needed."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._started = 0
        self._open = 0
        """Functions that wait or run."""
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._guard = threading.Lock()

    def call(self, function: Callable[[], T]) -> "Future[T]":
        """Have `function` called; the future gets what it returns or raises. One that is cancelled before its turn is
        never called."""
        future: Future[T] = Future()
        with self._guard:
            self._open += 1
            if self._open > self._started and self._started < self._most:
                self._started += 1
                name = f"{self._name}-{self._started}"
                threading.Thread(target=self._serve, args=(self._orders,), name=name, daemon=True).start()
            self._orders.put((future, function))
        return future

    def close(self) -> None:
        """End the threads: those that wait at once, the others when their function returns. Nothing is waited for."""
        with self._guard:
            for _ in range(self._started):
                self._orders.put(None)
            self._orders = queue.SimpleQueue()
            self._started = self._open = 0

    def _serve(self, orders: "queue.SimpleQueue[_Order | None]") -> None:
        pid = os.getpid()
        while (order := orders.get()) is not None:
            future, function = order
            answer: Any = None
            failure: BaseException | None = None
            is_wanted = future.set_running_or_notify_cancel()
            if is_wanted:
                try:
                    answer = function()
                except BaseException as error:  # also what ends a thread belongs to who asked
                    failure = error
            if os.getpid() != pid:
                os._exit(0)  # the function forked, and this is its child coming back: nobody waits for it here
            with self._guard:
                if orders is self._orders:
                    self._open -= 1
            if failure is not None:
                future.set_exception(failure)
            elif is_wanted:
                future.set_result(answer)
            del order, future, function, answer, failure  # keep nothing of them alive while waiting


class LoopThread(Generic[T]):
    """One coroutine on an event loop in a thread of its own, which nothing else shares.

    Args:
        name: of the thread.
        life: makes the coroutine, on that thread.
    """

    def __init__(self, name: str, life: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.ended: Future[T] = Future()
        """What the coroutine came to, once its loop is closed."""
        self._name = name
        self._life = life
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._live, args=(self._loop,), name=self._name, daemon=True).start()

    def call_soon(self, function: Callable[[], object]) -> None:
        """Have `function` called on the loop, from any thread; nothing happens when that has not begun or is over."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # closed
                self._loop.call_soon_threadsafe(function)

    def _live(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                answer = runner.run(self._life())
        except BaseException as error:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(answer)
