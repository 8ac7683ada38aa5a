"""``make demo STORE=redis``: a Redis server for the time of the demo, and a copy of its files for later.

As a program it brings the copy back for the time of one command, which finds the store in ``RUNWICK_STORE``::

    .venv/bin/python -m examples.stdlib.redis .venv/bin/runwick jobs get ID --app examples.stdlib.jobs

However that is told to stop, the server goes after it.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence

import psutil

from examples.stdlib.serving import FOLDER, place, run_beside
from scripts.servers.redis import RedisServer

COPY = FOLDER / "demo-redis"
BRING_BACK = ".venv/bin/python -m examples.stdlib.redis"


@contextlib.contextmanager
def served() -> Iterator[RedisServer]:
    """An empty server, named in ``RUNWICK_STORE``. What it holds in the end is copied."""
    with RedisServer(place()) as server:
        os.environ["RUNWICK_STORE"] = server.url()
        try:
            yield server
        finally:
            server.keep(COPY)


def cpu_s(server: RedisServer) -> float:
    """CPU time of the server so far, in seconds."""
    times = psutil.Process(server.pid).cpu_times()
    return float(times.user + times.system)


def main(command: Sequence[str]) -> int:
    """Run a command with the copy brought back; answers its exit status."""
    if not COPY.exists():
        print(f"there is no {COPY}; `make demo STORE=redis` leaves one", file=sys.stderr)
        return 2
    with RedisServer(place(), data=COPY) as server:
        os.environ["RUNWICK_STORE"] = server.url()
        return run_beside(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
