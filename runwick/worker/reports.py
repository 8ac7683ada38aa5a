"""What a worker tells the store with each renewal call: who it is, what its executors do, which runs have begun, and
the stacks that were asked for. What was told and has not changed is not told again.
"""

from collections.abc import Callable, Sequence

import msgspec

from runwick.contracts.activity import ExecutorActivity, Report, StackAnswer
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Kind, WorkerPresence
from runwick.worker.pools import Pools
from runwick.worker.registry import Registry
from runwick.worker.timings import ACTIVITY_MAX, MARK_AGE_MS, STACKS_MAX


class Reports:
    """Makes one worker's reports.

    Args:
        presence: who the worker is, and what it decodes; it changes when its pools do.
    """

    def __init__(
        self, presence: Callable[[], WorkerPresence], pools: Pools, registry: Registry, *, clock: Clock
    ) -> None:
        self._presence = presence
        self._pools = pools
        self._registry = registry
        self._clock = clock
        self._told: list[ExecutorActivity] | None = None
        self._kinds_told: Sequence[Kind] | None = None
        self._stacks: dict[bytes, StackAnswer] = {}

    def looked(self, answer: StackAnswer) -> None:
        """A stack that was asked for; it is told with the next call."""
        self._stacks[answer.attempt_id] = answer

    def next(self) -> Report:
        """What there is to tell now. It stays so until the store is known to have it."""
        doing, presence = self._doing(), self._presence()
        if presence.kinds == self._kinds_told:
            presence = msgspec.structs.replace(presence, kinds=None)
        old_enough_ms = self._clock.now_ms() - MARK_AGE_MS
        marks = [mark for mark in self._pools.marks() if mark.begun_at_ms <= old_enough_ms]
        return Report(
            presence=presence,
            executors=None if doing == self._told else doing,
            marks=self._registry.untold(marks),
            stacks=list(self._stacks.values())[:STACKS_MAX],
        )

    def told(self, report: Report) -> None:
        """The store has this one."""
        if report.presence.kinds is not None:
            self._kinds_told = report.presence.kinds
        if report.executors is not None:
            self._told = list(report.executors)
        self._registry.told(report.marks)
        for answer in report.stacks:
            if self._stacks.get(answer.attempt_id) is answer:
                del self._stacks[answer.attempt_id]

    def _doing(self) -> list[ExecutorActivity]:
        doing = self._pools.doing()
        if len(doing) > ACTIVITY_MAX:
            doing.sort(key=lambda executor: executor.attempt_id is None)
        return doing[:ACTIVITY_MAX]
