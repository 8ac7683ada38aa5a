"""Asking again when an answer was lost: the same command with the same token, until it is answered or time is up."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from runwick.contracts.ambient import Clock
from runwick.contracts.errors import OutcomeUnknown
from runwick.contracts.stores import Act, Runs
from runwick.worker.timings import Timings

T = TypeVar("T")


async def resolved(store: Runs, act: Callable[[], Act[T]], budget_s: float, timings: Timings, clock: Clock) -> T:
    """Run an act that applies once however often it is sent; send it again while its outcome is unknown.

    Raises:
        OutcomeUnknown: `budget_s` passed without an answer.
        StoreError: the store refused; nothing was applied.
    """
    until_s = clock.steady_s() + budget_s
    pause_s = timings.retry_initial_s
    while True:
        try:
            return await store.run_async(act())
        except OutcomeUnknown:
            if clock.steady_s() + pause_s >= until_s:
                raise
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, timings.retry_max_s)
