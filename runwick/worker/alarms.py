"""Rings at moments that are known in advance: each whole millisecond at most once, and none beyond a horizon, so that
there are never more timers than milliseconds in it.
"""

import asyncio
import math
from collections.abc import Callable


class Alarms:
    """Alarms of one sleeper on one event loop.

    Args:
        ring: what wakes it.
        horizon_s: what lies beyond that is somebody else's to find.
    """

    def __init__(self, ring: Callable[[], None], horizon_s: float) -> None:
        self._ring = ring
        self._horizon_ms = horizon_s * 1000
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def set(self, delay_ms: int) -> None:
        """Ring when `delay_ms` is over, and not sooner."""
        if delay_ms > self._horizon_ms:
            return
        loop = asyncio.get_running_loop()
        at_ms = math.ceil(loop.time() * 1000) + delay_ms
        if at_ms not in self._timers:
            self._timers[at_ms] = loop.call_at(at_ms / 1000, self._due, at_ms)

    def clear(self) -> None:
        """Ring no more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _due(self, at_ms: int) -> None:
        del self._timers[at_ms]
        self._ring()
