"""What the project has set itself, beside what this run came to."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from scripts.peers.measure import median
from scripts.peers.system import OurSystem
from scripts.peers.turns import Results

OURS: Final = {"postgres": "runwick-postgres", "sqlite": "runwick-sqlite", "redis": "runwick-redis"}


class Goal(NamedTuple):
    """One goal: what must be reached, and what one aims at."""

    text: str
    value: Callable[[Results], float | None]
    first: float
    aim: float
    at_least: bool = True
    digits: int = 2

    def is_met(self, value: float) -> bool:
        """Whether a value reaches what must be reached."""
        return value >= self.first if self.at_least else value <= self.first


def _figure(measure: str, key: str, store: str = "postgres") -> Callable[[Results], float | None]:
    return lambda results: median(results.of(measure, OURS[store]), key)


def _beside_the_best(measure: str, key: str, store: str, *, less: bool = False) -> Callable[[Results], float | None]:
    """Ours as a multiple of the best of the others on that store that promise as much."""

    def value(results: Results) -> float | None:
        ours, theirs = median(results.of(measure, OURS[store]), key), rivals(results, measure, key, store)
        if ours is None or not theirs:
            return None
        return ours / (min if less else max)(theirs.values())

    return value


def rivals(results: Results, measure: str, key: str, store: str) -> dict[str, float]:
    """What the others on a store came to, of those that promise at least once as ours does; by title."""
    found = {}
    for system in results.systems:
        if isinstance(system, OurSystem) or system.store != store or system.promise != "at least once":
            continue
        value = median(results.of(measure, system.name), key)
        if value is not None:
            found[system.title] = value
    return found


GOALS: Final[Sequence[Goal]] = (
    Goal("No-op on PostgreSQL, part of the floor", _figure("floors", "noop_part"), 0.8, 0.9),
    Goal("No-op on SQLite, part of the floor", _figure("floors", "noop_part", "sqlite"), 0.55, 0.65),
    Goal("No-op on Redis, part of the floor", _figure("floors", "noop_part", "redis"), 0.75, 0.9),
    Goal(
        "No-op on PostgreSQL, times the fastest other one",
        _beside_the_best("noop", "jobs_per_s", "postgres"),
        1.3,
        1.7,
    ),
    Goal("No-op on Redis, times the fastest other one", _beside_the_best("noop", "jobs_per_s", "redis"), 6, 10),
    Goal("1 ms jobs on PostgreSQL, part of raw forks", _figure("floors", "cpu_part_1ms"), 0.95, 0.97, digits=3),
    Goal("5 ms jobs on PostgreSQL, part of raw forks", _figure("floors", "cpu_part_5ms"), 0.97, 0.99, digits=3),
    Goal("20 ms jobs on PostgreSQL, part of raw forks", _figure("floors", "cpu_part_20ms"), 0.98, 0.995, digits=3),
    Goal(
        "Share of the cores at 5 ms on PostgreSQL, times the best other one",
        _beside_the_best("cpu-5ms", "share", "postgres"),
        1,
        1,
    ),
    Goal("Idle dispatch to start on PostgreSQL, p50 in ms", _figure("latency", "p50_ms"), 1.5, 1.0, at_least=False),
    Goal("Idle dispatch to start on PostgreSQL, p99 in ms", _figure("latency", "p99_ms"), 4, 4, at_least=False),
    Goal(
        "The same p50, times that of the quickest other one",
        _beside_the_best("latency", "p50_ms", "postgres", less=True),
        1,
        1,
        at_least=False,
    ),
    Goal(
        "Single dispatch on PostgreSQL, times the quickest other one",
        _beside_the_best("dispatch", "single_per_s", "postgres"),
        1,
        1,
    ),
    Goal("Supervisor on PostgreSQL, µs of CPU per no-op job", _figure("noop", "mains_cpu_us"), 12, 8, at_least=False),
    Goal(
        "Supervisor on SQLite, µs of CPU per no-op job",
        _figure("noop", "mains_cpu_us", "sqlite"),
        22,
        18,
        at_least=False,
    ),
    Goal("Accounting, µs of CPU per attempt", _figure("accounting", "cost_us"), 10, 7, at_least=False, digits=1),
    Goal("Memory of the worker tree, MB (PSS)", _figure("memory", "pss_mb"), 60, 60, at_least=False, digits=1),
    Goal("Rate with 1,000,000 waiting, part of a small store's", _figure("growth", "pending_part"), 0.67, 0.83),
    Goal("Rate under an open transaction, part of a small store's", _figure("growth", "held_part"), 0.67, 0.83),
)
