"""Starts supervisors of the application under fire, finds their processes, and reads the log of marks."""

import collections
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil

from tests.kills.application import MARKS

ROOT = Path(__file__).parent.parent.parent
PATIENCE_S = 60.0


class Mark(msgspec.Struct, frozen=True):
    """One line of the log."""

    number: int
    attempt_id: str
    pid: int
    step: int
    at_ns: int


class Field:
    """One store, one log, any number of supervisors, one after the other."""

    def __init__(self, folder: Path, store: str | None = None) -> None:
        self.log = folder / "marks.log"
        self.output = folder / "supervisor.log"
        self.log.touch()
        self.environment = {
            **os.environ,
            "RUNWICK_STORE": store or f"sqlite:///{folder / 'fire.db'}",
            "FIRE_LOG": str(self.log),
            "FIRE_FIELD": str(folder),
            # Whoever sets a title writes over the environment, by which `processes` finds it, unless told not to.
            "SPT_NOENV": "1",
        }

    @contextlib.contextmanager
    def supervisor(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """A supervisor in a session of its own; dead at the end, whatever happened."""
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "runwick_supervisor.command", "tests.kills.application:rw", "--executors", "2",
                 "--log-format", "json", *arguments],
                cwd=ROOT,
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )  # fmt: skip
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait(PATIENCE_S)

    def processes(self) -> list[psutil.Process]:
        """Every living process that belongs to this field, found by its environment."""
        mark = f"FIRE_FIELD={self.environment['FIRE_FIELD']}".encode()
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError, psutil.Error):
                if mark in Path(f"/proc/{process.pid}/environ").read_bytes() and process.status() != "zombie":
                    found.append(process)
        return found

    def marks(self) -> list[Mark]:
        marks = []
        for line in self.log.read_text().splitlines():
            number, attempt_id, pid, step, at_ns = line.split()
            marks.append(Mark(int(number), attempt_id, int(pid), int(step), int(at_ns)))
        return marks


def executors_of(supervisor: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The living executors of a supervisor, by their titles."""
    found = []
    for child in psutil.Process(supervisor.pid).children():
        with contextlib.suppress(psutil.Error):
            if child.cmdline()[:1] and child.cmdline()[0].startswith("runwick executor"):
                found.append(child)
    return found


def kill(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGKILL)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait until the condition holds.

    Raises:
        AssertionError: it did not within a minute.
    """
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, f"waited in vain for {what}"
        time.sleep(0.005)


def overlaps(marks: list[Mark]) -> list[str]:
    """Runs of one job that were alive at the same time: a mark of one run after another run's first mark."""
    runs: dict[int, dict[str, list[int]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for mark in marks:
        runs[mark.number][mark.attempt_id].append(mark.at_ns)
    found = []
    for number, attempts in runs.items():
        spans = sorted((min(times), max(times), attempt) for attempt, times in attempts.items())
        for (_, ended_ns, earlier), (begun_ns, _, later) in itertools.pairwise(spans):
            if begun_ns < ended_ns:
                found.append(f"job {number}: {later} began before {earlier} had ended")
    return found


def completed(marks: list[Mark]) -> set[int]:
    """Jobs of which at least one run went to its end."""
    return {mark.number for mark in marks if mark.step == MARKS - 1}
