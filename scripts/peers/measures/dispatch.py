"""How quickly jobs are dispatched, each confirmed by the store: one at a time, in batches, by eight processes."""

import contextlib
from typing import Final

from scripts.peers.measure import Bench, Column, Figures, Measure
from scripts.peers.system import System
from scripts.peers.trial import BULK, Trial, told_seconds, trial

SINGLE: Final = 4_000
BATCHED: Final = 40_000
PRODUCERS: Final = 8
_PATIENCE_S: Final = 120


def once(bench: Bench, system: System) -> Figures:
    """Dispatch without a worker."""
    single, batched = bench.count(SINGLE), bench.count(BATCHED)
    with trial(bench.grounds, system) as tried:
        told = {"single_per_s": round(single / tried.dispatch("nothing", single, wait_s=_PATIENCE_S), 1)}
        seconds = tried.dispatch("nothing", batched, 0, "--bulk", str(BULK), wait_s=_PATIENCE_S)
        told["bulk_per_s"] = round(batched / seconds, 1)
        told["producers_per_s"] = round(single / _together(tried, single), 1)
    return told


def _together(tried: Trial, jobs: int) -> float:
    """Seconds of the slowest of several producers, let go at once, that dispatch so many jobs between them."""
    with contextlib.ExitStack() as stack:
        producers = [
            stack.enter_context(tried.producing("nothing", -(-jobs // PRODUCERS), 0, "--gated"))
            for _ in range(PRODUCERS)
        ]
        for producer in producers:
            assert producer.stdout is not None
            producer.stdout.readline()
        for producer in producers:
            assert producer.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it has failed, and says how below
                producer.stdin.write("\n")
                producer.stdin.flush()
        return max(told_seconds(producer, _PATIENCE_S) for producer in producers)


MEASURE: Final = Measure(
    name="dispatch",
    title="Dispatch",
    text="Jobs per second that are dispatched and confirmed, without a worker: by one process one at a time, by one "
    "process in batches of up to 1,000 (one at a time where the system has no such call), by eight processes one at a "
    "time.",
    columns=(
        Column("single_per_s", "single", compared="more"),
        Column("bulk_per_s", "in batches", compared="more"),
        Column("producers_per_s", "eight producers", compared="more"),
    ),
    once=once,
    round_s=30,
    full=True,
)
