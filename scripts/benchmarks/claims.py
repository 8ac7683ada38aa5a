"""How long a claim of 128 takes where the store is large, or where something keeps its past alive.

Every kind of store stands beside a small one and is measured in turn with it: one with many jobs that wait, one with
many that have ended, and on PostgreSQL two with a transaction that was open while very many jobs went through, so that
nothing of them could be cleared away. The ratios of the medians are what counts; the 99th of 100 shows what it costs to
look from the start again.
"""

import contextlib
import time
from collections.abc import Iterator

import psycopg

from scripts.benchmarks.application import Nothing
from scripts.benchmarks.figures import Assignment, Figure, Report, percentile
from scripts.benchmarks.filling import fill_finished, fill_pending
from scripts.benchmarks.ground import CLAIM, Ground, claimed_again, fresh_ground, ready_commands, succeeded
from scripts.benchmarks.sites import POSTGRES

LARGE = 1_000_000
SMALL_PART = 0.06
"""Pending jobs of the small store, for each row of the large ones."""
FLOW_PART = 0.2
"""Jobs that go through while the transaction is open, likewise."""
BACKLOG = 3_000
"""What waits all the while in one of the two stores with an open transaction."""
WARM_UP = 3
"""Claims of each before the measurement: after a fill the first ones read from the disk."""
GOAL = 1.5


class Case:
    """One store whose claims are measured. What is claimed is settled, outside the measured time."""

    def __init__(self, name: str, meaning: str, ground: Ground, *, flows: bool = False) -> None:
        self.name = name
        self.meaning = meaning
        self.ground = ground
        self.taken_ms: list[float] = []
        self._flows = flows
        """Whether as many jobs are dispatched before each claim as it takes."""
        self._plan = ground.claim_plan(Nothing)

    def go_through(self, claims: int) -> list[float]:
        """Claim and settle so often; answers what the claims took, in milliseconds."""
        store = self.ground.rw.store
        taken_ms = []
        for _ in range(claims):
            if self._flows:
                store.run(store.dispatch(ready_commands(self.ground.rw, Nothing(), CLAIM)))
            plan = claimed_again(self._plan)
            started = time.perf_counter()
            attempts = store.run(store.claim(plan)).attempts
            taken_ms.append(1_000 * (time.perf_counter() - started))
            assert len(attempts) == CLAIM, f"{self.name}: a claim found {len(attempts)} of {CLAIM} jobs"
            store.run(store.settle(succeeded(attempts)))
        return taken_ms

    def figures(self, small: "Case") -> dict[str, float]:
        """Its medians and what it is compared with, as JSON has it."""
        taken = {f"p{percent}_ms": round(percentile(self.taken_ms, percent), 3) for percent in (50, 99)}
        ratio = percentile(self.taken_ms, 50) / percentile(small.taken_ms, 50)
        return {**taken, "slowest_ms": round(max(self.taken_ms), 3), "ratio": round(ratio, 3)}


def run(assignment: Assignment) -> Report:
    """Prepare all stores, then measure them in turn."""
    large = assignment.jobs or LARGE
    small = max(round(SMALL_PART * large), CLAIM * (WARM_UP + 2 * assignment.rounds))
    claims = (small - CLAIM * WARM_UP) // (2 * CLAIM * assignment.rounds)
    with contextlib.ExitStack() as stack:
        cases = _sizes(assignment, stack, max(large, small), small)
        if assignment.store == POSTGRES:
            cases += _held(assignment, stack, round(FLOW_PART * large))
        assignment.say(f"claims: {len(cases)} stores in turn, {claims * assignment.rounds} claims of each")
        for case in cases:
            case.go_through(WARM_UP)
        for _ in range(assignment.rounds):
            for case in cases:
                case.taken_ms += case.go_through(claims)
        durability = cases[0].ground.rw.store.profile
    measured = {case.name: case.figures(cases[0]) for case in cases}
    worst = max(figures["ratio"] for figures in measured.values())
    return Report(
        benchmark="claims",
        jobs=large,
        durability=durability,
        ours={"attempts": CLAIM, "claims": claims * assignment.rounds, **measured},
        floor={},
        ratio=worst,
        figures=[
            *(
                Figure(case.name, f"{figures['p50_ms']:.2f} ms", f"{case.meaning}; × {figures['ratio']:.2f}")
                for case, figures in zip(cases, measured.values(), strict=True)
            ),
            Figure("ratio", f"{worst:.2f}", f"the worst one, half of the claims; the goal is {GOAL} or less"),
        ],
    )


def _sizes(assignment: Assignment, stack: contextlib.ExitStack, large: int, small: int) -> list[Case]:
    """A small store and two large ones, the small one first."""
    grounds = [stack.enter_context(fresh_ground(assignment.site)) for _ in range(3)]
    assignment.say(f"claims: filling with {small:,} and {large:,} pending jobs, and {large:,} finished ones")
    fill_pending(grounds[0], small)
    fill_pending(grounds[1], large)
    fill_finished(grounds[2], large)
    fill_pending(grounds[2], small)
    return [
        Case("small", f"half of the claims, {small:,} jobs pending", grounds[0]),
        Case("pending", f"{large:,} pending", grounds[1]),
        Case("finished", f"{large:,} finished, {small:,} pending", grounds[2]),
    ]


def _held(assignment: Assignment, stack: contextlib.ExitStack, flow: int) -> list[Case]:
    """Two stores through which jobs flowed under an open transaction, which stays open."""
    cases = []
    for name, backlog in (("held_with_backlog", BACKLOG), ("held_without_backlog", 0)):
        assignment.say(f"claims: {flow:,} jobs go through under an open transaction, {backlog:,} wait all the while")
        ground = stack.enter_context(fresh_ground(assignment.site))
        if backlog:
            fill_pending(ground, backlog)
        stack.enter_context(_open_transaction(ground))
        meaning = f"{flow:,} gone through under an open transaction, {backlog:,} pending"
        case = Case(name, meaning, ground, flows=True)
        case.go_through(-(-flow // CLAIM))
        cases.append(case)
    return cases


@contextlib.contextmanager
def _open_transaction(ground: Ground) -> Iterator[None]:
    """A transaction with a snapshot of its own, as a long report holds one."""
    with psycopg.connect(ground.url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT 1")
        yield
