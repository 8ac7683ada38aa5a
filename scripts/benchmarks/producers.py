"""Several processes that dispatch at once, each confirmed on disk one at a time, as the processes of a web server do.

Run as ``python -m scripts.benchmarks.producers JOBS PRODUCERS`` with the store in ``RUNWICK_STORE``, in a process of
its own, so that it forks without threads. Prints one JSON object: jobs and wall_s, from the common start until the last
one has its last receipt.
"""

import json
import os
import sys
import time

from scripts.benchmarks.application import Nothing, rw


def main(jobs: int, producers: int) -> None:
    """Let the producers dispatch `jobs` jobs between them and print what it took."""
    starting_end, gun = os.pipe()
    shares = [jobs // producers + (number < jobs % producers) for number in range(producers)]
    reports = [_fork(share, starting_end, gun) for share in shares]
    readers = [os.fdopen(report, "r") for report in reports]
    for reader in readers:
        assert reader.readline() == "ready\n", "a producer could not open the store"
    started = time.monotonic()
    os.close(gun)
    for reader in readers:
        assert reader.read() == "done\n", "a producer failed"
    wall_s = time.monotonic() - started
    for _ in reports:
        os.wait()
    print(json.dumps({"jobs": jobs, "wall_s": wall_s}))


def _fork(jobs: int, starting_end: int, gun: int) -> int:
    """Start one producer; answers the descriptor on which it tells that it is ready, and that it is done."""
    reading_end, writing_end = os.pipe()
    if os.fork():
        os.close(writing_end)
        return reading_end
    os.close(gun)
    rw.check()
    os.write(writing_end, b"ready\n")
    os.read(starting_end, 1)  # answers when the gun is closed everywhere
    for _ in range(jobs):
        rw.dispatch(Nothing())
    os.write(writing_end, b"done\n")
    rw.close()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
