"""The async part of what a thread does, on an event loop of another thread.

    thread   open ─visit─▶ wait ◀─ value        handler        close ─visit─▶ wait ◀─
    loop               await …             (its own affairs)             await …

All visits of one companion happen in one task, so that what opens there closes there: task groups, cancel scopes and
the tokens of context variables insist on it. It begins with the first visit, and with the visitor's context variables.
"""

import asyncio
import contextlib
import contextvars
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


async def answered(future: "Future[T]") -> T:
    """What another thread answers: awaited on an event loop, waited for in a thread that runs none."""
    # Asked so that no error comes of it: it would be told as the context of what the future raises.
    if asyncio._get_running_loop() is None:
        return future.result()
    return await asyncio.wrap_future(future)


class Companion:
    """One task on `loop` that does what a thread cannot. For one thread at a time, and never for the loop's own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._orders: asyncio.Queue[tuple[Awaitable[Any], Future[Any]] | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._has_begun = False

    async def visit(self, awaitable: Awaitable[T]) -> T:
        """Have it awaited over there and wait for that; the caller's thread stands still meanwhile.

        Raises:
            RuntimeError: there is no such loop any more.
        """
        self._has_begun = True
        future: Future[T] = Future()
        try:
            self._loop.call_soon_threadsafe(self._take_in, awaitable, future, contextvars.copy_context())
        except RuntimeError:
            _give_up(awaitable)
            raise
        return future.result()

    def end(self) -> None:
        """No more visits."""
        if self._has_begun:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._orders.put_nowait, None)

    def _take_in(self, awaitable: Awaitable[Any], future: "Future[Any]", context: contextvars.Context) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._serve(), name="runwick companion", context=context)
        if self._task.done():  # somebody over there cancelled it between two visits
            _give_up(awaitable)
            future.set_exception(RuntimeError("the task that opens what is async was cancelled"))
        else:
            self._orders.put_nowait((awaitable, future))

    async def _serve(self) -> None:
        while (order := await self._orders.get()) is not None:
            awaitable, future = order
            try:
                future.set_result(await awaitable)
            except BaseException as error:
                future.set_exception(error)
            del order, awaitable, future  # keep nothing of them alive while waiting


def _give_up(awaitable: Awaitable[Any]) -> None:
    """Nobody will await it; say so, that Python need not complain."""
    if asyncio.iscoroutine(awaitable):
        awaitable.close()
