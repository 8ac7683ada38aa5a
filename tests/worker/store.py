"""A store in memory that fails as a test says: refuses, hangs, loses answers, has rows locked."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, TypeVar

import msgspec

from runwick.contracts.activity import Beat, Report
from runwick.contracts.attempts import Attempt, Held
from runwick.contracts.errors import SettlementRejected
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.stores import Act
from runwick.stores.memory.store import MemoryStore
from tests.ambient import FakeClock, FakeIds

T = TypeVar("T")

EVERY = "every act"


async def never() -> None:
    """An answer that does not come."""
    await asyncio.Event().wait()


class FaultyStore(MemoryStore):
    """Faults are set by an act's name."""

    def __init__(self, clock: FakeClock, ids: FakeIds) -> None:
        super().__init__(clock=clock, ids=ids)
        self.fails: dict[str, Exception] = {}
        """Raised by each call, while it stands here, before anything is applied."""
        self.faults: dict[str, list[Exception]] = {}
        """One error for each call."""
        self.faults_after: dict[str, list[Exception]] = {}
        """Raised after the act was applied: its answer is lost."""
        self.hangs: set[str] = set()
        """Not applied and never answered."""
        self.meanwhile: dict[str, Callable[[], None]] = {}
        """Called between an act's application and its answer."""
        self.holds_up: dict[str, Callable[[], Awaitable[None]]] = {}
        """Awaited between an act's application and its answer."""
        self.reaches_late: dict[str, Callable[[], Awaitable[None]]] = {}
        """Awaited before the act is applied."""
        self.refuses: Callable[[Settlement], bool] = lambda settlement: False
        """Whether the content of this settlement cannot be stored."""
        self.locked: set[int] = set()
        """Jobs whose row somebody's transaction holds."""
        self.calls: list[str] = []
        self.reports: list[Report] = []
        self.renewals: list[int] = []
        """How many leases each call was to renew."""

    def settle(self, settlements: Sequence[Settlement]) -> Act[list[Answer]]:
        if any(map(self.refuses, settlements)):
            raise SettlementRejected("settlement_rejected", "one of these cannot be stored")
        free = [settlement for settlement in settlements if settlement.attempt.job not in self.locked]
        jobs = [settlement.attempt.job for settlement in settlements]
        return self._unless_locked(super().settle(free), jobs)

    def release(self, attempts: Sequence[Attempt]) -> Act[list[Answer]]:
        free = [attempt for attempt in attempts if attempt.job not in self.locked]
        return self._unless_locked(super().release(free), [attempt.job for attempt in attempts])

    def renew(self, report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int) -> Act[Beat]:
        free = [item for item in held if item.job not in self.locked]
        locked = frozenset(item.job for item in held) & self.locked
        self.reports.append(report)
        self.renewals.append(len(held))
        act = super().renew(report, free, lease_ms, recovery_interval_ms)
        return _changed(act, lambda beat: msgspec.structs.replace(beat, locked=locked))

    async def run_async(self, act: Act[T]) -> T:
        self.calls.append(act.name)
        if (error := self.fails.get(act.name) or self.fails.get(EVERY)) is not None:
            raise error
        if waiting := self.faults.get(act.name):
            raise waiting.pop(0)
        if {act.name, EVERY} & self.hangs:
            await never()
        if waits := self.reaches_late.get(act.name):
            await waits()
        answer = await super().run_async(act)
        if happens := self.meanwhile.get(act.name):
            happens()
        if waits := self.holds_up.get(act.name):
            await waits()
        if waiting := self.faults_after.get(act.name):
            raise waiting.pop(0)
        return answer

    def _unless_locked(self, act: Act[list[Answer]], jobs: Sequence[int]) -> Act[list[Answer]]:
        """The answers for those that are free, and *locked* in between for the others."""
        held = frozenset(self.locked)

        def spread(answers: list[Answer]) -> list[Answer]:
            rest = iter(answers)
            return [Answer.LOCKED if job in held else next(rest) for job in jobs]

        return _changed(act, spread)


def _changed(act: Act[T], change: Callable[[T], T]) -> Act[T]:
    def steps() -> Generator[Any, Any, T]:
        return change((yield from act.steps()))

    return Act(act.name, steps, reads_only=act.reads_only)
