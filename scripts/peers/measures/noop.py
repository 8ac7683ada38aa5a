"""Throughput of jobs that do nothing, and what they cost in CPU."""

from typing import Final

from scripts.peers.measure import Bench, Column, Figures, Measure
from scripts.peers.system import System
from scripts.peers.trial import trial


def once(bench: Bench, system: System) -> Figures:
    """Work off one queue."""
    jobs = bench.count(system.noop_jobs, 200)
    with trial(bench.grounds, system) as tried:
        drain = tried.drain("nothing", jobs)
    return {
        "jobs": jobs,
        "jobs_per_s": round(drain.jobs / drain.seconds, 1),
        "workers_cpu_us": round(1e6 * drain.workers_cpu_s / drain.jobs, 1),
        "mains_cpu_us": round(1e6 * drain.mains_cpu_s / drain.jobs, 1),
        "server_cpu_us": round(1e6 * drain.server_cpu_s / drain.jobs, 1) if system.store != "sqlite" else None,
        "processes": drain.processes,
        "left": drain.left,
    }


MEASURE: Final = Measure(
    name="noop",
    title="Jobs that do nothing",
    text="A full queue of jobs with a payload of about a hundred bytes, on PostgreSQL vacuumed and analyzed for all, "
    "worked off by two worker processes; "
    "counted from when each of them has ended a job (or, where one alone takes most of them, from the first job) to "
    "the end of the last one. CPU is that of all processes of the workers, and of the server's, for each job; *main "
    "process* is the part of the processes that the command line starts (ours: the supervisor).",
    columns=(
        Column("jobs_per_s", "jobs/s", compared="more"),
        Column("workers_cpu_us", "CPU of workers, µs/job", compared="less"),
        Column("mains_cpu_us", "of it main process"),
        Column("server_cpu_us", "CPU of server, µs/job"),
        Column("jobs", "jobs"),
        Column("left", "left"),
    ),
    once=once,
    rounds=3,
)
