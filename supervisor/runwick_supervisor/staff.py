"""The pools that a worker serves, each with executors of its own: made at the start, changed when it is reloaded.

A pool that stays as it was keeps its backend with all that it holds; its executors are replaced one by one. One whose
size or whose executors' options have changed gets another backend, like a new one, and the former leaves when its runs
have ended.
"""

from collections.abc import Callable
from typing import NamedTuple

from runwick.config.options import ExecutorOptions
from runwick.contracts.ambient import Clock
from runwick.declarations.pools import Pool
from runwick.policy.lanes import lanes_of
from runwick.worker.pools import ServedPool
from runwick_supervisor.backend import ATTEMPTS_MAX, PAYLOADS_MAX_BYTES, ExecutorBackend
from runwick_supervisor.events import ExecutorEvent
from runwick_supervisor.planning import Plan
from runwick_supervisor.zygote_handle import Zygote


class Crew(NamedTuple):
    """A pool's backend, and what it was made for."""

    backend: ExecutorBackend
    name: str
    numbers: range
    """Of its executors; unique among those that live."""
    options: ExecutorOptions


class Engagement(NamedTuple):
    """Who serves the pools of a plan."""

    crews: list[Crew]
    served: list[ServedPool]
    stay: list[ExecutorBackend]
    """Backends that served before; their executors are of another zygote yet."""


class Staff:
    """The crews of one worker.

    Args:
        tell: hears of births and deaths, with the name of the pool.
    """

    def __init__(self, clock: Clock, tell: Callable[[ExecutorEvent, str], None]) -> None:
        self._clock = clock
        self._tell = tell
        self._crews: list[Crew] = []
        self._former: list[Crew] = []
        """They may have executors yet."""

    @property
    def pools(self) -> int:
        """How many are served now."""
        return len(self._crews)

    def propose(self, plan: Plan, zygote: Zygote) -> Engagement:
        """Who would serve this plan, what is new with executors of this zygote. Nothing has changed yet."""
        crews: list[Crew] = []
        stay: list[ExecutorBackend] = []
        for pool in plan.pools:
            crew = next((crew for crew in self._crews if _fits(crew, pool, plan)), None)
            if crew is None:
                crew = self._new_crew(
                    pool, plan, zygote, [one.numbers for one in (*self._crews, *self._former, *crews)]
                )
            else:
                stay.append(crew.backend)
            crews.append(crew)
        served = [
            ServedPool(pool.name, crew.backend, tuple(lanes_of(pool.queues or ())), pool.concurrency)
            for pool, crew in zip(plan.pools, crews, strict=True)
        ]
        return Engagement(crews, served, stay)

    def accept(self, engagement: Engagement, alive: set[int]) -> None:
        """They serve from now on. What they replace keeps its numbers as long as executors with them are alive."""
        replaced = [crew for crew in self._crews if crew not in engagement.crews]
        self._former = [crew for crew in (*self._former, *replaced) if alive.intersection(crew.numbers)]
        self._crews = engagement.crews

    def _new_crew(self, pool: Pool, plan: Plan, zygote: Zygote, taken: list[range]) -> Crew:
        """What may wait behind runs is shared out among the pools by their sizes."""
        size, worker, options = pool.concurrency, plan.manifest.worker, plan.manifest.executors
        numbers = _free_numbers(size, taken)
        backend = ExecutorBackend(
            zygote,
            pool.name,
            size,
            self._clock,
            worker.record_resource_usage,
            options=options,
            cancellation_grace_s=worker.cancellation_grace.total_seconds(),
            cleanup_budget_s=worker.cleanup_budget.total_seconds(),
            fence_margin_s=worker.lease_safety_margin.total_seconds() / 2,
            first_executor=numbers.start,
            attempts_max=max(1, ATTEMPTS_MAX * size // plan.executors),
            payloads_max_bytes=PAYLOADS_MAX_BYTES * size // plan.executors,
            on_event=lambda event: self._tell(event, pool.name),
        )
        return Crew(backend, pool.name, numbers, options)


def _fits(crew: Crew, pool: Pool, plan: Plan) -> bool:
    return (crew.name, len(crew.numbers), crew.options) == (pool.name, pool.concurrency, plan.manifest.executors)


def _free_numbers(size: int, taken: list[range]) -> range:
    """The lowest numbers in a row that are nobody's."""
    first = 1
    for numbers in sorted(taken, key=lambda numbers: numbers.start):
        if numbers.start >= first + size:
            break
        first = max(first, numbers.stop)
    return range(first, first + size)
