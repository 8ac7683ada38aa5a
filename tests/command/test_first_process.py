"""Process 1 of a pid namespace, as in a container without an init: whatever loses its parent arrives there."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from runwick_supervisor.processes import process_table
from tests.command.conftest import Place, terminate, wait_for
from tests.command.test_restarts import event_of

SCATTER = """
import os, signal, subprocess, time
from pathlib import Path
from runwick import Job, Runwick

rw = Runwick("scatters", store="sqlite:///scatters.db")
# Its own child, which loses its parent at once.
subprocess.run(["sh", "-c", "sleep 0.1 &"], check=True)

@rw.job("scatters.scatter", max_executions=1)
class Scatter(Job):
    folder: str
    times: int

@rw.job("scatters.hold", max_executions=1)
class Hold(Job):
    folder: str

@rw.handler
def scatter(job: Scatter) -> None:
    for _ in range(job.times):
        child = os.fork()
        if child == 0:
            os.fork()
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    # Its own children's statuses are its own, however long they have been dead.
    known = subprocess.Popen(["sh", "-c", "exit 5"])
    Path(job.folder, "scattered").touch()
    while not Path(job.folder, "gate").exists():
        time.sleep(0.005)
    assert known.wait() == 5

@rw.handler
def hold(job: Hold) -> None:
    Path(job.folder, "held").touch()
    while True:
        time.sleep(1)
"""
SUPERVISE = f"{sys.executable} -m runwick_supervisor.command"
WORKER = f"{Path(sys.executable).parent / 'runwick'} worker"


@pytest.fixture
def first(place: Place) -> Iterator[Callable[..., tuple[subprocess.Popen[str], psutil.Process]]]:
    """Starts a program as process 1 of a pid namespace; answers `unshare`, and the program as this side sees it."""
    started: list[subprocess.Popen[str]] = []

    def start(text: str) -> tuple[subprocess.Popen[str], psutil.Process]:
        place.program = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c")
        outside = place.command(text)
        started.append(outside)
        wait_for(lambda: psutil.Process(outside.pid).children(), "process 1")
        return outside, psutil.Process(outside.pid).children()[0]

    yield start
    for process in started:
        process.kill()


def dead_below(process: psutil.Process) -> int:
    """How many that came from it are dead and nobody has taken their status."""
    rows = list(process_table())
    below = {process.pid}
    while more := {row.pid for row in rows if row.parent in below} - below:
        below |= more
    return sum(row.is_zombie for row in rows if row.pid in below)


def child_titled(process: psutil.Process, title: str) -> int:
    """The pid of its one child with this in its title."""
    found = []
    for child in process.children():
        with contextlib.suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
            found += [child.pid] if title in " ".join(child.cmdline()) else []
    (pid,) = found
    return pid


def test_f016_the_supervisor_as_process_1_buries_what_handlers_scatter(
    place: Place,
    application: Callable[[str, str], Any],
    first: Callable[..., tuple[subprocess.Popen[str], psutil.Process]],
) -> None:
    scatters = application("scatters", SCATTER)
    scattered = scatters.rw.dispatch(scatters.Scatter(str(place.folder), 1000))
    held = scatters.rw.dispatch(scatters.Hold(str(place.folder)))
    # What the shell started before it became the supervisor is the supervisor's child, and of its session.
    outside, supervisor = first(f"sleep 0.1 & exec {SUPERVISE} scatters --executors 2 --log-format json")
    assert not any("process 1" in note for note in event_of(outside, "opened")["notes"])
    wait_for((place.folder / "scattered").exists, "the scattering")
    wait_for(lambda: dead_below(supervisor) >= 1000, "all that was scattered to be dead")
    wait_for((place.folder / "held").exists, "the other run")
    os.kill(child_titled(supervisor, "scatters.hold"), signal.SIGKILL)
    wait_for(lambda: scatters.rw.get(held).state == "failed", "its end")
    (place.folder / "gate").touch()
    wait_for(lambda: scatters.rw.get(scattered).state == "succeeded", "the end of the other")
    wait_for(lambda: not dead_below(supervisor), "all dead to be buried")
    (attempt,) = scatters.rw.get(held).attempts
    assert (attempt.outcome, attempt.death.cause, attempt.death.signal) == ("crashed", "signal", signal.SIGKILL)
    recycled = event_of(outside, "executor_recycled")
    assert "it has many dead children that nobody waits for" in recycled["text"]
    terminate(supervisor)  # type: ignore[arg-type]
    outside.communicate(timeout=30)
    assert outside.returncode == 0


def test_f016_a_worker_with_threads_says_as_process_1_that_it_needs_an_init(
    place: Place,
    application: Callable[[str, str], Any],
    first: Callable[..., tuple[subprocess.Popen[str], psutil.Process]],
) -> None:
    application("scatters", SCATTER)
    outside, _ = first(f"exec {WORKER} scatters --until-empty --log-format json")
    out, _ = outside.communicate(timeout=30)
    assert (outside.returncode, "this worker is process 1" in out, "docker run --init" in out) == (0, True, True)
    place.program = WORKER.split()
    status, out, _ = place.run("scatters", "--until-empty", "--log-format", "json")
    assert (status, "process 1" in out) == (0, False)
