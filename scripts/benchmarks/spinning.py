"""Work of a known length: pure Python, bound by the interpreter, the same for the jobs and for their floor."""

import time

CALIBRATION_S = 0.1
"""CPU time of one calibration; the quickest of several counts, since everything else only slows it down."""


def spin(iterations: int) -> int:
    """Compute for a while; the cost is proportional to `iterations`."""
    total = 0
    for number in range(iterations):
        total += number * number % 7
    return total


def iterations_of(work_ms: float) -> int:
    """How many iterations take `work_ms` milliseconds of CPU time here and now."""
    iterations = 1_000
    while _cpu_s(iterations) < CALIBRATION_S:
        iterations *= 2
    per_iteration_s = min(_cpu_s(iterations) for _ in range(5)) / iterations
    return max(1, round(work_ms / 1_000 / per_iteration_s))


def _cpu_s(iterations: int) -> float:
    started = time.process_time()
    spin(iterations)
    return time.process_time() - started
