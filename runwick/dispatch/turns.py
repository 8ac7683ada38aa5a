"""The line in which the dispatches of one process wait for their turn, so that a burst cannot exhaust the store.

::

    caller ──▶ inside, at most `max_concurrent_calls` ──▶ leaves, and calls in who has waited longest
       └─────▶ waiting, at most `max_waiting_operations` ──▲
                  └── there are too many, or `admission_wait` is over ──▶ LocalCapacityExceeded, nothing was sent

Threads that block and tasks of any number of event loops stand in the same line. What they do inside is their own.
"""

import asyncio
import contextlib
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from typing import Protocol

from runwick.config.durations import advice_text
from runwick.config.options import ProducerOptions
from runwick.contracts.errors import LocalCapacityExceeded
from runwick.runtime.forks import Forkable, notice


class Turns(Forkable):
    """The turns of one application in one process; in a forked child all are free.

    Args:
        options: the limits, which are checked when the store is opened and not read before the first turn.
    """

    def __init__(self, options: ProducerOptions) -> None:
        super().__init__()
        self._options = options
        self._room = _Room(options)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn on the calling thread, and hold it for the length of the block.

        Raises:
            LocalCapacityExceeded: none came; the block is not entered.
        """
        room, caller = self._present(), _Thread()
        try:
            if not room.enter(caller):
                caller.wait(self._options.admission_wait.total_seconds())
                self._check_called(room, caller)
            yield
        finally:
            self._leave(room, caller)

    @contextlib.asynccontextmanager
    async def turn_async(self) -> AsyncIterator[None]:
        """`turn` for a task of an event loop; cancelling it takes it out of the line."""
        room, caller = self._present(), _Task()
        try:
            if not room.enter(caller):
                await caller.wait(self._options.admission_wait.total_seconds())
                self._check_called(room, caller)
            yield
        finally:
            self._leave(room, caller)

    def after_fork_in_child(self) -> None:
        self._room = _Room(self._options)

    def _present(self) -> "_Room":
        notice()
        return self._room

    # A caller that lives through a fork belongs to its parent's room, which is not this process's any more: whoever was
    # there is not here, and one of them may have held its lock.

    def _check_called(self, room: "_Room", caller: "_Caller") -> None:
        if room is not self._room or not room.has_inside(caller):
            most, waited = self._options.max_concurrent_calls, advice_text(self._options.admission_wait)
            raise _exceeded(f"all {most} turns stayed taken for {waited}")

    def _leave(self, room: "_Room", caller: "_Caller") -> None:
        if room is self._room:
            room.leave(caller)


class _Caller(Protocol):
    """One who stands in the line."""

    def call(self) -> bool:
        """Tell it, from whatever thread, that its turn has come; False when there is nobody to hear it any more."""
        ...


class _Room:
    """Who is inside and who waits. Whoever leaves calls in the next ones, so that nobody overtakes."""

    def __init__(self, options: ProducerOptions) -> None:
        self._options = options
        self._guard = threading.Lock()
        self._inside: set[_Caller] = set()
        self._waiting: OrderedDict[_Caller, None] = OrderedDict()

    def enter(self, caller: _Caller) -> bool:
        """Go in, or stand in line, to be called later: then the answer is False.

        Raises:
            LocalCapacityExceeded: too many stand there already.
        """
        with self._guard:
            if len(self._inside) < self._options.max_concurrent_calls:
                self._inside.add(caller)
                return True
            if len(self._waiting) >= self._options.max_waiting_operations:
                raise _exceeded(f"{len(self._inside)} are under way and {len(self._waiting)} wait for their turn")
            self._waiting[caller] = None
            return False

    def has_inside(self, caller: _Caller) -> bool:
        with self._guard:
            return caller in self._inside

    def leave(self, caller: _Caller) -> None:
        """Go out, or out of the line; who is in neither any more may leave again."""
        with self._guard:
            self._waiting.pop(caller, None)
            self._inside.discard(caller)
            while self._waiting and len(self._inside) < self._options.max_concurrent_calls:
                called, _ = self._waiting.popitem(last=False)
                if called.call():
                    self._inside.add(called)


class _Thread:
    """A caller whose thread stands still until it is called."""

    def __init__(self) -> None:
        self._silence = threading.Lock()
        self._silence.acquire()

    def call(self) -> bool:
        self._silence.release()
        return True

    def wait(self, seconds: float) -> None:
        self._silence.acquire(timeout=seconds)


class _Task:
    """A caller whose event loop goes on until it is called."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._called = self._loop.create_future()

    def call(self) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._hear)
        except RuntimeError:  # the loop was closed
            return False
        return True

    async def wait(self, seconds: float) -> None:
        await asyncio.wait((self._called,), timeout=seconds)

    def _hear(self) -> None:
        if not self._called.done():
            self._called.set_result(None)


def _exceeded(what: str) -> LocalCapacityExceeded:
    return LocalCapacityExceeded(
        "local_capacity_exceeded",
        f"too many dispatch calls of this process at once ({what}); nothing was sent. Try again later, dispatch in "
        "batches, or raise max_concurrent_calls",
    )
