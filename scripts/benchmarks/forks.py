"""The floor of `cpu`: bare forks that spin without a store, a queue or a word to each other.

Run as ``python -m scripts.benchmarks.forks ITERATIONS SECONDS FORKS`` in a process of its own, so that it forks
without threads; prints one JSON object: units, wall_s and cpu_s of all forks together.
"""

import json
import os
import sys
import time

from scripts.benchmarks.spinning import spin


def main(iterations: int, seconds: float, forks: int) -> None:
    """Let the forks work for `seconds` and print what they did."""
    started = time.monotonic()
    reports = [_fork(iterations, started + seconds) for _ in range(forks)]
    units, cpu_s = 0, 0.0
    for reading_end in reports:
        with os.fdopen(reading_end, "rb") as report:
            done, cost_s = json.load(report)
        units, cpu_s = units + done, cpu_s + cost_s
    wall_s = time.monotonic() - started
    for _ in reports:
        os.wait()
    print(json.dumps({"units": units, "wall_s": wall_s, "cpu_s": cpu_s}))


def _fork(iterations: int, until: float) -> int:
    """Start one fork; answers the descriptor from which its report is read."""
    reading_end, writing_end = os.pipe()
    if os.fork():
        os.close(writing_end)
        return reading_end
    units = 0
    while time.monotonic() < until:
        spin(iterations)
        units += 1
    os.write(writing_end, json.dumps([units, time.process_time()]).encode())
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
