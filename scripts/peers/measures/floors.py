"""Ours beside what no worker can beat: the store's own acts for no-op jobs, raw forks for jobs that compute."""

from typing import Any, Final

from scripts.benchmarks import cpu, noop
from scripts.benchmarks.figures import Assignment
from scripts.benchmarks.sites import PostgresSite, RedisSite, Site, SqliteSite
from scripts.peers.grounds import Grounds
from scripts.peers.measure import Bench, Column, Figures, Measure
from scripts.peers.system import Store, System

WORK_MS: Final = (5,)
FULL_WORK_MS: Final = (1, 5, 20)
SECONDS: Final = 5.0
ROUNDS: Final = 3


def once(bench: Bench, system: System) -> Figures:
    """The benchmarks of `scripts.bench`, on the servers of this run; on PostgreSQL also with jobs that compute."""
    told: dict[str, Any] = {}
    report = noop.run(_assignment(bench, system, noop.JOBS))
    told |= {"noop_per_s": report.ours["jobs_per_s"], "noop_floor_per_s": report.floor["jobs_per_s"]}
    told["noop_part"] = report.ratio
    if system.store == "postgres":
        for work_ms in FULL_WORK_MS if bench.full else WORK_MS:
            told[f"cpu_part_{work_ms}ms"] = cpu.run(_assignment(bench, system, None, work_ms)).ratio
    return told


def _assignment(bench: Bench, system: System, jobs: int | None, work_ms: float = 5) -> Assignment:
    return Assignment(
        store=system.store,
        site=_site(bench.grounds, system.store),
        jobs=bench.count(jobs) if jobs else None,
        seconds=0.2 if bench.quick else SECONDS,
        work_ms=work_ms,
        rounds=1 if bench.quick else ROUNDS,
        say=lambda _text: None,
    )


def _site(grounds: Grounds, store: Store) -> Site:
    if store == "postgres":
        return PostgresSite(grounds.postgres)
    return RedisSite(grounds.redis) if store == "redis" else SqliteSite(grounds.folder)


MEASURE: Final = Measure(
    name="floors",
    title="Beside the floor",
    text="Runwick beside what no worker can beat. No-op: the store's claim and settle acts alone, called back to back. "
    "Jobs that compute: as many raw forks without a store. Both in turn with ours, medians of three rounds.",
    columns=(
        Column("noop_per_s", "no-op, jobs/s"),
        Column("noop_floor_per_s", "floor"),
        Column("noop_part", "part of the floor", 3),
        Column("cpu_part_1ms", "1 ms: part of raw forks", 3),
        Column("cpu_part_5ms", "5 ms: part of raw forks", 3),
        Column("cpu_part_20ms", "20 ms: part of raw forks", 3),
    ),
    once=once,
    round_s=60,
    ours_only=True,
)
