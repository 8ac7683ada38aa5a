"""PgQueuer, drained: as many workers as we have executors, batches of 100, the rest as its documentation advises.

Its schema is the durable one, with the autovacuum settings that it recommends, in a database of the server that ours
uses too. What counts is the time from the start that its workers share, when all of them are loaded and connected, to
the last success that it wrote down.
"""

import contextlib
import math
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import psycopg

from scripts.benchmarks.figures import Assignment, Figure, median, rate_text, rounded
from scripts.benchmarks.statements import sql
from scripts.benchmarks.supervised import EXECUTORS, PROJECT
from scripts.servers.variables import variables

BATCH: Final = 100
VERSION: Final = Path(__file__).with_name("requirements.txt").read_text().split()[0].partition("==")[2]
"""The release that is compared with."""

_PROGRAMS: Final = PROJECT / ".venv-peers" / "bin"
_SIDE: Final = "scripts.benchmarks.peers.pgqueuer_side"
_PATIENCE_S: Final = 300


class PgQueuer:
    """Its rounds. Without its environment there are none, and one that fails is the last; neither fails a benchmark."""

    def __init__(self, assignment: Assignment, jobs: int, payload: bytes) -> None:
        self._assignment = assignment
        self._jobs = jobs
        self._payload = payload
        self._jobs_per_s: list[float] = []
        self._problem = "" if _PROGRAMS.is_dir() else "not here to compare with; `make bench-peers` brings it"

    def measure(self) -> float:
        """One round: fill a queue and drain it; not a number where that is impossible."""
        if self._problem:
            return math.nan
        self._assignment.say(f"noop: PgQueuer, {self._jobs:,} jobs")
        try:
            self._jobs_per_s.append(self._round())
        except (OSError, subprocess.SubprocessError, AssertionError) as failure:
            self._problem = f"could not be measured: {failure}"
            return math.nan
        return self._jobs_per_s[-1]

    def figure(self) -> Figure:
        """Its row for people."""
        name = f"PgQueuer {VERSION}"
        if self._problem:
            return Figure(name, "–", self._problem)
        meaning = f"the same jobs in its own queue, {EXECUTORS} of its workers, batches of {BATCH}"
        return Figure(name, rate_text(self._jobs_per_s), meaning)

    def as_json(self, ours_jobs_per_s: float) -> dict[str, Any]:
        """The same for machines; `ours_times` says how many times its rate ours is."""
        theirs = None if self._problem else median(self._jobs_per_s)
        return {
            "version": VERSION,
            "workers": EXECUTORS,
            "batch": BATCH,
            "jobs_per_s": theirs,
            "jobs_per_s_rounds": rounded(self._jobs_per_s),
            "ours_times": theirs and round(ours_jobs_per_s / theirs, 4),
            "problem": self._problem or None,
        }

    def _round(self) -> float:
        with self._assignment.site.store() as url:
            environment = {**os.environ, **variables(url)}
            _complete(environment, "pgq", "install")
            _complete(environment, "pgq", "autovac")
            _complete(environment, "python", "-m", _SIDE, str(self._jobs), self._payload.decode())
            started_s = _drain(environment)
            with psycopg.connect(url) as connection:
                ((done, left, ended_s),) = connection.execute(sql("pgqueuer_ended")).fetchall()
        assert (done, left) == (self._jobs, 0), f"it ended {done:,} of {self._jobs:,} jobs well and left {left:,}"
        return float(self._jobs / (ended_s - started_s))


def _complete(environment: Mapping[str, str], program: str, *arguments: str) -> None:
    """Run a program of its environment to its end."""
    command = [str(_PROGRAMS / program), *arguments]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True, timeout=_PATIENCE_S)


def _drain(environment: Mapping[str, str]) -> float:
    """Let the workers empty the queue; answers when they were let go, in seconds since the epoch."""
    command = [str(_PROGRAMS / "pgq"), "run", f"{_SIDE}:worker", "--mode", "drain"]
    command += ["--batch-size", str(BATCH)]
    with contextlib.ExitStack() as stack:
        starting_end, gun = os.pipe()
        stack.callback(os.close, starting_end)
        shot = stack.enter_context(os.fdopen(gun, "wb"))
        workers = []
        for _ in range(EXECUTORS):
            worker = subprocess.Popen(
                command, cwd=PROJECT, env=environment, stdin=starting_end, stdout=subprocess.PIPE, bufsize=0
            )
            workers.append(stack.enter_context(worker))
            stack.callback(worker.kill)
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"ready\n", "a worker of it did not get ready"
        started_s = time.time()
        shot.close()
        for worker in workers:
            assert worker.wait(_PATIENCE_S) == 0, f"a worker of it ended with status {worker.returncode}"
    return started_s
