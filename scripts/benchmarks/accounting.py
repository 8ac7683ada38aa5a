"""What accounting costs: attempts without it and then with it, by the CPU time of the process that runs them.

Run as ``python -m scripts.benchmarks.accounting [FORKS]`` in a process of its own; prints one JSON object. Every fork
measures all works without accounting, turns it on, and measures them again: two processes that do the same differ by
more than accounting costs. The quickest of many tries counts, so that the figures also hold on a machine that has other
things to do.

    attempt_us      an attempt that does nothing, from the payload to the encoded outcome, by way of measuring
    accounting_us   of that, what is left when the attempt without accounting is taken away
    slower          by which share an attempt that computes, makes objects or handles JSON takes longer with all of it;
                    the median of the forks
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Final, NoReturn

from runwick import Job
from runwick.contracts.states import Priority
from runwick.execution.invoke import Invoker
from runwick.execution.metering import End
from runwick.execution.run import Run
from runwick.runtime.ambient import SystemClock
from runwick_supervisor import native
from runwick_supervisor.executor_end import ExecutorEnd
from runwick_supervisor.handoff import ParentEnd, encode_outcome
from runwick_supervisor.metering import measuring
from scripts.benchmarks.application import Nothing, Spin, rw
from scripts.benchmarks.spinning import iterations_of

FORKS: Final = 9
WAYS: Final = ("plain", "compiled", "counting")
"""Without the compiled part; with it; and counting allocations as well, as executors do."""
_ATTEMPTS: Final = 100
"""So many that do nothing are measured at once, a short time in which they are rarely disturbed."""
_TRIES: Final = 100
_SPIN_MS: Final = 0.3
_DOCUMENT: Final = json.dumps([{"number": n, "parts": [1.5, 2.5, str(n)], "rest": {"none": None}} for n in range(150)])

Work = Callable[[], object]


def main(forks: int) -> dict[str, object]:
    """Measure every way in `forks` forks."""
    spin = Spin(iterations_of(_SPIN_MS))
    reports = {way: [_forked(way, spin) for _ in range(forks)] for way in WAYS}
    idle_ns = {way: min(with_it["nothing"] for _, with_it in reports[way]) for way in WAYS}
    idle_ns["off"] = min(without["nothing"] for way in WAYS for without, _ in reports[way])
    attempt_us = {way: took_ns / _ATTEMPTS / 1000 for way, took_ns in idle_ns.items()}
    return {
        "attempt_us": {way: round(attempt_us[way], 2) for way in ("off", *WAYS)},
        "accounting_us": {way: round(attempt_us[way] - attempt_us["off"], 2) for way in WAYS},
        "slower": {
            work: round(statistics.median(its[work] / without[work] for without, its in reports["counting"]) - 1, 4)
            for work in reports["counting"][0][0]
            if work != "nothing"
        },
    }


def _forked(way: str, spin: Spin) -> tuple[dict[str, int], dict[str, int]]:
    """Nanoseconds of each work without and with accounting, in a fork of its own."""
    reading_end, writing_end = os.pipe()
    if not os.fork():
        _measure_in_fork(way, spin, writing_end)
    os.close(writing_end)
    with os.fdopen(reading_end, "rb") as report:
        without, with_it = json.load(report)
    os.wait()
    return without, with_it


def _measure_in_fork(way: str, spin: Spin, writing_end: int) -> NoReturn:
    try:
        end = ExecutorEnd(ParentEnd().descriptors)
        without = _quickest(_works(spin, None))
        library = None if way == "plain" else native.load()[0]
        with_it = _quickest(_works(spin, measuring(end, library, count_allocations=way == "counting")))
        os.write(writing_end, json.dumps([without, with_it]).encode())
    finally:
        os._exit(0)


def _quickest(works: dict[str, Work]) -> dict[str, int]:
    return {name: min(_cpu_ns(work) for _ in range(_TRIES)) for name, work in works.items()}


def _cpu_ns(work: Work) -> int:
    started_ns = time.thread_time_ns()
    work()
    return time.thread_time_ns() - started_ns


def _works(spin: Spin, measure: Callable[[], End] | None) -> dict[str, Work]:
    invoker = Invoker(rw.catalog, clock=SystemClock(), record_usage=measure is not None, measure=measure)

    def attempts(job: Job, number: int = 1) -> None:
        entry = rw.catalog.by_record[type(job)]
        payload = entry.codec.encode(job)
        run = Run(bytes(16), bytes(16), entry.kind.name, 1, "default", Priority.MEDIUM, 1, 1, 1, 0)
        for _ in range(number):
            encode_outcome(invoker.invoke_blocking(run, payload))

    return {
        "nothing": lambda: attempts(Nothing(), _ATTEMPTS),
        "spin": lambda: attempts(spin),
        "allocate": lambda: [(number, [number], {number: number}) for number in range(1000)],
        "json": lambda: json.dumps(json.loads(_DOCUMENT)),
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else FORKS)))
