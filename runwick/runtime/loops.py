"""The one shape of a loop.

A loop is an object with a `run_once` that does one round and answers how long it may sleep. What drives it contains
its errors, tells them to the bus, and pauses; a wake-up ends a sleep early. Tests call `run_once` themselves.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from runwick.runtime.wake import Wake


class Loop(Protocol):
    """One repeated duty of a worker."""

    @property
    def name(self) -> str: ...

    @property
    def wake(self) -> Wake:
        """Ends its sleep early."""
        ...

    @property
    def pause_after_failure_s(self) -> float:
        """How long to wait after a round that raised."""
        ...

    async def run_once(self) -> float | None:
        """Do one round. Answers the seconds to sleep, None to sleep until woken."""
        ...


async def keep_running(loop: Loop, *, until: Callable[[], bool], failed: Callable[[str, Exception], None]) -> None:
    """Run rounds until `until` answers True; it is asked after every round and every wake-up.

    An error of a round is handed to `failed` with the loop's name and never ends the loop. After an error the pause
    is slept whole: a wake-up must not turn a failing store into a busy loop.
    """
    while not until():
        try:
            pause_s = await loop.run_once()
        except Exception as error:
            failed(loop.name, error)
            await _pause(loop, until)
            continue
        if until():
            return
        if pause_s is None or pause_s > 0:
            await loop.wake.sleep(pause_s)


async def _pause(loop: Loop, until: Callable[[], bool]) -> None:
    """Sleep the whole pause after a failure, but end with the loop."""
    left_s = loop.pause_after_failure_s
    step_s = 0.05
    while left_s > 0 and not until():
        await asyncio.sleep(min(step_s, left_s))
        left_s -= step_s
