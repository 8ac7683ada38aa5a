"""The pools that a worker serves, each with executors of its own: made at the start, changed when it is reloaded.

A pool that stays keeps its backend with all that it holds, also when its size changes; its executors are replaced one
by one. One whose executors' options have changed gets another backend, like a new one, and the former leaves when its
runs have ended.
"""

from collections.abc import Callable
from typing import NamedTuple

from runwick.config.options import ExecutorOptions
from runwick.contracts.ambient import Clock
from runwick.declarations.pools import Pool
from runwick.worker.pools import ServedPool
from runwick_supervisor.backend import ATTEMPTS_MAX, PAYLOADS_MAX_BYTES, ExecutorBackend
from runwick_supervisor.events import ExecutorEvent
from runwick_supervisor.planning import Plan
from runwick_supervisor.zygote_handle import Zygote


class Crew(NamedTuple):
    """A pool's backend, and what it was made for."""

    backend: ExecutorBackend
    name: str
    options: ExecutorOptions


class Engagement(NamedTuple):
    """Who serves the pools of a plan."""

    crews: list[Crew]
    served: list[ServedPool]
    stay: list[tuple[ExecutorBackend, int]]
    """Backends that served before, and how many executors each shall have; those are of another zygote yet."""
    plan: Plan
    zygote: Zygote


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
        stay: list[tuple[ExecutorBackend, int]] = []
        for pool in plan.pools:
            crew = next((crew for crew in self._crews if _fits(crew, pool, plan)), None)
            if crew is None:
                crew = self._new_crew(pool, plan, zygote, _numbers_of(*self._crews, *self._former, *crews))
            else:
                stay.append((crew.backend, pool.concurrency))
            crews.append(crew)
        served = [ServedPool.of(pool, crew.backend) for pool, crew in zip(plan.pools, crews, strict=True)]
        return Engagement(crews, served, stay, plan, zygote)

    def accept(self, engagement: Engagement, alive: set[int]) -> None:
        """They serve from now on, with executors of its zygote.

        Args:
            alive: the numbers of all living executors. Those whom they replace keep theirs for that long.
        """
        replaced = [crew for crew in self._crews if crew not in engagement.crews]
        self._former = [crew for crew in (*self._former, *replaced) if alive.intersection(crew.backend.numbers)]
        self._crews = engagement.crews
        for crew in replaced:
            crew.backend.dwindle()
        for backend, size in engagement.stay:
            taken = alive | _numbers_of(*self._crews, *self._former)
            more = _free_numbers(max(0, size - len(backend.numbers)), taken)
            attempts_max, payloads_max_bytes = _ahead(size, engagement.plan)
            backend.renew(
                engagement.zygote, size, more, attempts_max=attempts_max, payloads_max_bytes=payloads_max_bytes
            )

    def _new_crew(self, pool: Pool, plan: Plan, zygote: Zygote, taken: set[int]) -> Crew:
        size, worker, options = pool.concurrency, plan.manifest.worker, plan.manifest.executors
        attempts_max, payloads_max_bytes = _ahead(size, plan)
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
            first_executor=_free_numbers(size, taken).start,
            attempts_max=attempts_max,
            payloads_max_bytes=payloads_max_bytes,
            on_event=lambda event: self._tell(event, pool.name),
        )
        return Crew(backend, pool.name, options)


def _fits(crew: Crew, pool: Pool, plan: Plan) -> bool:
    return (crew.name, crew.options) == (pool.name, plan.manifest.executors)


def _ahead(size: int, plan: Plan) -> tuple[int, int]:
    """How many attempts, and bytes of payloads, may wait behind the runs of a pool: shared out by the pools' sizes."""
    return max(1, ATTEMPTS_MAX * size // plan.executors), PAYLOADS_MAX_BYTES * size // plan.executors


def _numbers_of(*crews: Crew) -> set[int]:
    """Of their executors; unique among those that live."""
    return {number for crew in crews for number in crew.backend.numbers}


def _free_numbers(size: int, taken: set[int]) -> range:
    """The lowest numbers in a row that are nobody's."""
    first = 1
    while clash := taken.intersection(range(first, first + size)):
        first = max(clash) + 1
    return range(first, first + size)
