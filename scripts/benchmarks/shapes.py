"""The stores whose claims are measured: for every shape a small one, and large ones in which something could stand in
the way of a claim.

All of a shape are asked with the same plan, over the same lanes, and the small one is as small as the measurement
allows. What is counted as large stands beside the jobs that are claimed or is more of them, as the shape says.
"""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import psycopg
import redis

from runwick.contracts.attempts import Lane, LaneTurn
from runwick.policy.lanes import lanes_of
from scripts.benchmarks.application import AT_ONCE, NAME, Nothing, Scoped, Stamp
from scripts.benchmarks.figures import percentile
from scripts.benchmarks.filling import LEASE_MS, fill_blocked, fill_finished, fill_pending
from scripts.benchmarks.ground import CLAIM, Ground, claimed_again, evenly, ready_commands, succeeded

LANES: Final = tuple(lanes_of(f"queue-{number}" for number in range(17)))[:50]
APART: Final = tuple(lanes_of(["apart"]))
"""Of a line beside lanes that are full of the past: what it costs is told apart from what they cost."""
BACKLOG = 3_000
"""What waits all the while in the stores through which others flow."""


class Line:
    """A full scope through which jobs flow: those that hold it end, and as many are called out of its line."""

    def __init__(self, ground: Ground, number: int, lanes: Sequence[Lane]) -> None:
        """Make `number` jobs of it, of these lanes in turn."""
        self.taken_ms: list[float] = []
        self._store = ground.rw.store
        self._plan = ground.claim_plan(Scoped, turns=[LaneTurn(lane, AT_ONCE) for lane in lanes], lease_ms=LEASE_MS)
        self._running = fill_blocked(ground, number, lanes)

    def flow(self) -> None:
        """Let those that run end, and claim those that were called."""
        started = time.perf_counter()
        self._store.run(self._store.settle(succeeded(self._running)))
        self._running = self._store.run(self._store.claim(claimed_again(self._plan))).attempts
        self.taken_ms.append(1_000 * (time.perf_counter() - started))
        assert len(self._running) == AT_ONCE, f"{len(self._running)} of {AT_ONCE} were called out of the line"

    def figures(self) -> dict[str, float]:
        """What one pass of `AT_ONCE` jobs took, and the last quarter of them beside the first."""
        quarter = -(-len(self.taken_ms) // 4)
        first, last = (percentile(part, 50) for part in (self.taken_ms[:quarter], self.taken_ms[-quarter:]))
        return {
            "jobs": AT_ONCE * len(self.taken_ms),
            "p50_ms": round(percentile(self.taken_ms, 50), 3),
            "last_to_first": round(last / first, 3),
        }


class Case:
    """One store whose claims are measured. What is claimed is settled, outside the measured time."""

    def __init__(
        self, name: str, meaning: str, ground: Ground, *, flows: bool = False, line: Line | None = None
    ) -> None:
        """
        Args:
            name: what the answer calls it.
            meaning: what is in the store.
            ground: the store, in which every claim finds all the jobs it asks for.
            flows: as many jobs are dispatched before each claim as it takes.
            line: through which jobs flow before each claim.
        """
        self.name, self.meaning = name, meaning
        self.ground = ground
        self.line = line
        self.taken_ms: list[float] = []
        self._plan = ground.claim_plan(Nothing, Scoped, turns=evenly(LANES, CLAIM))
        # As a worker does at its start; what the store did not know, it would look up again and again.
        ground.rw.store.run(ground.rw.store.register(NAME, LANES, self._plan.kinds))
        self._flows = flows

    def measure(self) -> None:
        """Claim once more."""
        self.taken_ms.append(self.go_through())

    def go_through(self) -> float:
        """Claim and settle; answers what the claim took, in milliseconds."""
        store = self.ground.rw.store
        if self._flows:
            store.run(store.dispatch(ready_commands(self.ground.rw, Nothing(), CLAIM, LANES)))
        if self.line:
            self.line.flow()
        plan = claimed_again(self._plan)
        started = time.perf_counter()
        attempts = store.run(store.claim(plan)).attempts
        taken_ms = 1_000 * (time.perf_counter() - started)
        assert len(attempts) == CLAIM, f"{self.name}: a claim found {len(attempts)} of {CLAIM} jobs"
        store.run(store.settle(succeeded(attempts)))
        return taken_ms


class Size(NamedTuple):
    """How much there is of everything."""

    large: int
    """What the shape is about."""
    claims: int
    """Of each store, those before the measurement included."""

    @property
    def small(self) -> int:
        """Jobs that are enough for all claims in all lanes."""
        return evenly(LANES, CLAIM)[0].most * len(LANES) * self.claims

    @property
    def line(self) -> int:
        """Jobs that are enough for a line through which some flow before each claim."""
        return AT_ONCE * (self.claims + 1)


Opened = Callable[[], Ground]
"""Opens a new store, for as long as the measurement lasts."""
Shape = Callable[[Opened, Size, contextlib.ExitStack], list[Case]]
"""Makes the stores of a shape, the small one first."""


def pending(opened: Opened, size: Size, _stack: contextlib.ExitStack) -> list[Case]:
    """Very many jobs wait."""
    large = max(size.large, size.small)
    ground = opened()
    fill_pending(ground, large, lanes=LANES)
    return [_small(opened, size), Case("pending", f"{large:,} pending", ground)]


def finished(opened: Opened, size: Size, _stack: contextlib.ExitStack) -> list[Case]:
    """Very many jobs have ended."""
    ground = opened()
    fill_finished(ground, size.large)
    fill_pending(ground, size.small, lanes=LANES)
    return [_small(opened, size), Case("finished", f"{size.large:,} finished as well", ground)]


def blocked(opened: Opened, size: Size, _stack: contextlib.ExitStack) -> list[Case]:
    """Very many jobs wait for a scope that is full, in the same lanes, and some flow through it all the while."""
    ground = opened()
    line = Line(ground, max(size.large, size.line), LANES)
    fill_pending(ground, size.small, lanes=LANES)
    meaning = f"{max(size.large, size.line):,} blocked by a scope as well"
    return [_small(opened, size), Case("blocked", meaning, ground, line=line)]


def undecodable(opened: Opened, size: Size, _stack: contextlib.ExitStack) -> list[Case]:
    """Very many jobs stand in front, in the same lanes, which the worker cannot decode."""
    ground = opened()
    fill_pending(ground, size.large, Stamp(0), LANES)
    fill_pending(ground, size.small, lanes=LANES)
    meaning = f"{size.large:,} that nobody decodes in front"
    return [_small(opened, size), Case("undecodable", meaning, ground)]


def held(opened: Opened, size: Size, stack: contextlib.ExitStack) -> list[Case]:
    """Very many jobs went through while a transaction was open, which stays so: nothing of them is cleared away. Some
    flow through a scope as well, in the store that is never empty."""
    small, ground, emptied = opened(), opened(), opened()
    fill_pending(small, BACKLOG, lanes=LANES)
    line = Line(ground, size.line, APART)
    fill_pending(ground, BACKLOG, lanes=LANES)
    meaning = f"{size.large:,} gone through under an open transaction, {{}} pending"
    cases = [
        Case("small", f"{BACKLOG:,} pending", small, flows=True),
        Case("held_with_backlog", meaning.format(f"{BACKLOG:,}"), ground, flows=True),
        Case("held_without_backlog", meaning.format("none"), emptied, flows=True),
    ]
    for case in cases[1:]:
        stack.enter_context(_open_transaction(case.ground))
        for _ in range(-(-size.large // CLAIM)):
            case.go_through()
    cases[1].line = line
    return cases


SHAPES: Final[dict[str, tuple[Shape, int]]] = {
    "pending": (pending, 1_000_000),
    "finished": (finished, 1_000_000),
    "blocked": (blocked, 100_000),
    "held": (held, 200_000),
    "undecodable": (undecodable, 100_000),
}
"""Each shape, and how large its large stores are."""


def _small(opened: Opened, size: Size) -> Case:
    ground = opened()
    fill_pending(ground, size.small, lanes=LANES)
    return Case("small", f"{size.small:,} pending, and nothing else", ground)


@contextlib.contextmanager
def _open_transaction(ground: Ground) -> Iterator[None]:
    """A transaction with a snapshot of its own, as a long report holds one. Redis has none: there it only is open."""
    if ground.is_redis:
        with redis.Redis.from_url(ground.client_url, single_connection_client=True) as client:
            client.execute_command("MULTI")
            yield
        return
    if ground.is_postgres:
        with psycopg.connect(ground.url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.execute("SELECT 1")
            yield
        return
    with contextlib.closing(sqlite3.connect(ground.file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        yield
