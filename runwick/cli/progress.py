"""The quiet line of a command that runs a worker: what was done since the start, and what waits."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from runwick.cli.reporter import Opening, Reporter
from runwick.contracts.errors import RunwickError
from runwick.contracts.stores import Outlook
from runwick.worker.tally import Tally


class Watched(Protocol):
    """What runs the jobs."""

    @property
    def tally(self) -> Tally: ...


class Progress:
    """Tells a reporter how far a worker is, from `begin` to `summary`.

    Args:
        outlook: asks the store what is left.
        runs: answers how many handlers run, after their CPU time so far is in the tally where it is measured.
        cores: how many cores the handlers have, where their CPU time is measured; None where it is not.
        interval_s: between two lines.
    """

    def __init__(
        self,
        reporter: Reporter,
        worker: Watched,
        outlook: Callable[[], Awaitable[Outlook]],
        *,
        runs: Callable[[], int],
        cores: int | None,
        interval_s: float,
    ) -> None:
        self._reporter = reporter
        self._worker = worker
        self._ask = outlook
        self._runs = runs
        self._cores = cores
        self._interval_s = interval_s
        self._begun_s = self._last_s = time.monotonic()
        self._last_cpu_us = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the worker was ready."""
        return self._task is not None

    def begin(self, about: Opening, seconds: float) -> None:
        """The worker is ready, so many seconds after its start."""
        self._begun_s = self._last_s = time.monotonic()
        self._reporter.ready(about, seconds)
        self._task = asyncio.create_task(self._lines(), name="progress")

    def end(self) -> None:
        """No more lines."""
        if self._task is not None:
            self._task.cancel()

    def summary(self, left: Outlook | None) -> None:
        """What the whole run came to."""
        tally = self._worker.tally
        # A run that waited idle for its end did its work until the last settlement.
        elapsed_s = max((tally.last_settled_s or self._begun_s) - self._begun_s, 1e-9)
        self._reporter.summary(tally, self._share(tally.handler_cpu_us, elapsed_s), left, elapsed_s)

    async def _lines(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            outlook = await self._outlook()
            running, now_s = self._runs(), time.monotonic()
            tally = self._worker.tally
            share = self._share(tally.handler_cpu_us - self._last_cpu_us, now_s - self._last_s)
            self._last_s, self._last_cpu_us = now_s, tally.handler_cpu_us
            self._reporter.progress(tally, share, outlook, running, now_s - self._begun_s)

    def _share(self, cpu_us: int, elapsed_s: float) -> float | None:
        return None if self._cores is None else cpu_us / 1e6 / (elapsed_s * self._cores)

    async def _outlook(self) -> Outlook | None:
        """What waits; a store that gives no answer is the worker's to report, not this line's."""
        try:
            return await self._ask()
        except RunwickError:
            return None
