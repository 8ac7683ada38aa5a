"""A worker's line to its store. Every call of its loops goes over it.

    ask ─▶ answer                    within the time limit; a call given up has an unknown outcome
        └▶ the history is broken ──▶ the line is cut for good: no call goes out any more, whoever asks

A history is broken when the store is another one than before or went back in time: then nothing that this worker holds
is known to be its own, and nothing may be written for it. Only a restart makes a new line.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from runwick.contracts.ambient import Clock
from runwick.contracts.errors import OutcomeUnknown, SettlementRejected, StoreHistoryBroken, StoreUnavailable
from runwick.contracts.stores import Act, Runs
from runwick.worker.pauses import Pause
from runwick.worker.timings import Timings
from runwick.worker.troubles import Troubles

T = TypeVar("T")


class Line:
    """One worker's calls to its store.

    Args:
        store: what answers.
        timings: how long one call may take, and how soon it is sent again.
        clock: for budgets.
        troubles: told of every call that fails.
        cut: told once, by whoever meets a broken history first.
    """

    def __init__(
        self,
        store: Runs,
        timings: Timings,
        *,
        clock: Clock,
        troubles: Troubles,
        cut: Callable[[StoreHistoryBroken], None],
    ) -> None:
        self._store = store
        self._timings = timings
        self._clock = clock
        self._troubles = troubles
        self._cut = cut
        self.broken: StoreHistoryBroken | None = None
        """Why the line is cut; None while it is whole."""

    async def ask(self, act: Act[T], limit_s: float | None = None) -> T:
        """Run one act.

        Args:
            act: what to run. It must be safe to send twice, for its answer may be lost.
            limit_s: how long to wait for the answer; `control_request_timeout` when not given.

        Raises:
            OutcomeUnknown: no answer came in time, or it was lost.
            StoreHistoryBroken: the line is cut.
            StoreError: the store refused; nothing was applied.
        """
        if self.broken is not None:
            raise self.broken
        try:
            answer = await self._answer(act, self._timings.control_timeout_s if limit_s is None else limit_s)
        except StoreHistoryBroken as error:
            if self.broken is None:
                self.broken = error
                self._cut(error)
            raise
        except SettlementRejected:
            self._troubles.end(act.name)
            raise
        except Exception as error:
            self._troubles.met(act.name, error)
            raise
        if self._troubles:
            self._troubles.end(act.name)
        return answer

    async def _answer(self, act: Act[T], limit_s: float) -> T:
        try:
            async with asyncio.timeout(limit_s):
                return await self._store.run_async(act)
        except TimeoutError:
            raise OutcomeUnknown("outcome_unknown", f"{act.name} had no answer within {limit_s:g} s") from None

    async def insist(self, act: Callable[[], Act[T]], budget_s: float) -> T:
        """Run an act that applies once however often it is sent, and send it again while no answer comes.

        Raises:
            OutcomeUnknown, StoreUnavailable: `budget_s` passed without an answer.
            StoreError: the store refused; nothing was applied.
        """
        until_s = self._clock.steady_s() + budget_s
        pause = Pause(self._timings.retry_initial_s, self._timings.retry_max_s)
        while True:
            pause_s = pause.take_s()
            try:
                return await self.ask(act())
            except (OutcomeUnknown, StoreUnavailable):
                if self._clock.steady_s() + pause_s >= until_s:
                    raise
            await asyncio.sleep(pause_s)


class Insisting:
    """A line that insists.

    Args:
        line: what each act goes over.
        budget_s: for how long each is sent again while no answer comes.
    """

    def __init__(self, line: Line, budget_s: float) -> None:
        self._line = line
        self._budget_s = budget_s

    async def run_async(self, act: Act[T]) -> T:
        """Run an act, as `Line.insist` does."""
        return await self._line.insist(lambda: act, self._budget_s)
