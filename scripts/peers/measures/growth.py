"""Whether work slows down as tables grow: with a million jobs waiting, and with a transaction held open meanwhile."""

import contextlib
import time
from collections.abc import Iterator
from typing import Final

import psycopg

from scripts.peers.measure import Bench, Column, Figures, Measure
from scripts.peers.system import Place, System
from scripts.peers.trial import BULK, Trial, trial

LARGE: Final = 1_000_000
THROUGH: Final = 200_000
"""Jobs that go through while the transaction is open, at most eight times those of the no-op measure."""
_FILL_S: Final = 400
_WINDOW_S: Final = 5.0


def once(bench: Bench, system: System) -> Figures:
    """The same jobs in a small store, in a large one, and under an open transaction."""
    with trial(bench.grounds, system) as tried:
        drain = tried.drain("nothing", bench.count(system.noop_jobs, 200))
    small = drain.jobs / drain.seconds
    pending, held = _with_backlog(bench, system), _under_transaction(bench, system)
    return {
        "small_per_s": round(small, 1),
        "pending_per_s": round(pending, 1),
        "pending_part": round(pending / small, 3),
        "held_per_s": round(held, 1),
        "held_part": round(held / small, 3),
    }


def _with_backlog(bench: Bench, system: System) -> float:
    """The rate at which jobs go while very many wait."""
    jobs = bench.count(LARGE, 1_000)
    with trial(bench.grounds, system) as tried:
        tried.dispatch("nothing", jobs, 0, "--bulk", str(BULK), wait_s=_FILL_S)
        with tried.working(warm=False) as tree:
            first = tried.wait_for(tree, 1 + jobs // 100)
            time.sleep(0.05 if bench.quick else _WINDOW_S)
            last = tried.board.standing()
    return (last.ended - first.ended) / (last.last_ns - first.last_ns) * 1e9 if last.last_ns > first.last_ns else 0.0


def _under_transaction(bench: Bench, system: System) -> float:
    """The rate of the last fifth of very many jobs, all of which go through while a transaction is open."""
    jobs = bench.count(min(THROUGH, 8 * system.noop_jobs), 200)
    with trial(bench.grounds, system) as tried:
        tried.dispatch("nothing", jobs, 0, "--bulk", str(BULK), wait_s=_FILL_S)
        with _open_transaction(tried.place):
            return _last_rate(tried, jobs)


def _last_rate(tried: Trial, jobs: int) -> float:
    with tried.working(warm=False) as tree:
        first = tried.wait_for(tree, jobs - jobs // 5)
        last = tried.wait_for(tree, jobs)
    return (last.ended - first.ended) / (last.last_ns - first.at_ns) * 1e9 if last.last_ns > first.at_ns else 0.0


@contextlib.contextmanager
def _open_transaction(place: Place) -> Iterator[None]:
    """A transaction with a snapshot of its own, as a long report holds one."""
    with psycopg.connect(place.url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT 1")
        yield


MEASURE: Final = Measure(
    name="growth",
    title="As tables grow",
    text="No-op jobs per second in a small store, with a million waiting, and for the last fifth of up to 200,000 that "
    "go through while a transaction of somebody else stays open; the parts are those of the small store's rate.",
    columns=(
        Column("small_per_s", "small, jobs/s"),
        Column("pending_per_s", "1,000,000 waiting"),
        Column("pending_part", "part", 2),
        Column("held_per_s", "open transaction"),
        Column("held_part", "part", 2),
    ),
    once=once,
    round_s=90,
    full=True,
    stores=("postgres",),
)
