"""A wake-up: ends somebody's sleep early, from any thread. Ringing twice wakes once; a ring while awake is kept."""

import asyncio
import contextlib
import threading


class Wake:
    """One sleeper on one event loop, any number of ringers."""

    def __init__(self) -> None:
        self._rung = False
        self._sleeper: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None

    def ring(self) -> None:
        """End the sleep, or the next one at once. Safe from any thread."""
        self._rung = True
        if self._loop is None:
            return
        if threading.get_ident() == self._thread:
            self._end_sleep()
        else:
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody sleeps on it any more
                self._loop.call_soon_threadsafe(self._end_sleep)

    async def sleep(self, seconds: float | None) -> bool:
        """Sleep until rung, or for `seconds` (None: without limit). Answers whether it was rung."""
        if self._loop is None:
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        timer = None
        if not self._rung:
            self._sleeper = self._loop.create_future()
            if seconds is not None:
                timer = self._loop.call_later(seconds, self._end_sleep)
            # A ring from another thread between the check and here has scheduled `_end_sleep` already.
            if self._rung:
                self._end_sleep()
            try:
                await self._sleeper
            finally:
                self._sleeper = None
                if timer is not None:
                    timer.cancel()
        rung, self._rung = self._rung, False
        return rung

    def _end_sleep(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)
