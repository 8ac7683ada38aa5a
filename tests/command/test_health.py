"""``runwick health`` beside real workers: it sees them live, drain, stand still and die."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.command.conftest import Place, line_of, terminate, wait_for

BIN = Path(sys.executable).parent
WORKERS = {"runwick worker": (str(BIN / "runwick"), "worker"), "runwick-supervise": (str(BIN / "runwick-supervise"),)}

SLOW = "import time, pathlib\nwhile not pathlib.Path('gate').exists(): time.sleep(0.005)\n"
"""An application whose import takes until the gate is there."""


class Seen:
    """What one call came to."""

    def __init__(self, ran: subprocess.CompletedProcess[str]) -> None:
        self.status, self.out, self.err = ran.returncode, ran.stdout, ran.stderr

    def __repr__(self) -> str:
        return f"{self.status} {self.out!r} {self.err!r}"


def health(place: Place, *arguments: str) -> Seen:
    program = [str(BIN / "runwick"), "health", "--run-dir", str(place.folder / "run"), *arguments]
    return Seen(subprocess.run(program, cwd=place.folder, capture_output=True, text=True, timeout=30))


def started(place: Place, program: str) -> subprocess.Popen[str]:
    place.program = WORKERS[program]
    process = place.command("errands")
    while "ready in" not in (line := line_of(process)):
        assert line, "it has ended"
    wait_for(lambda: health(place).status == 0, "its health")
    return process


@pytest.mark.parametrize("program", WORKERS)
def test_a_worker_is_healthy_until_it_is_told_to_stop(place: Place, errands: Any, program: str) -> None:
    process = started(place, program)
    seen = health(place)
    assert (seen.status, seen.err) == (0, "")
    assert seen.out.startswith(f"healthy · errands · {program} · process {process.pid} · seen ")
    errands.rw.dispatch(errands.Run("hold", str(place.folder / "gate")))
    wait_for((place.folder / "gate.started").exists, "the run")
    terminate(process)
    wait_for(lambda: health(place).status == 1, "its draining")
    seen = health(place)
    assert seen.out.startswith(f"unhealthy (draining) · errands · {program} ")
    assert seen.out.endswith("\n  worker: it was told to stop\n")
    assert health(place, "--live").status == 0
    (place.folder / "gate").touch()
    process.communicate(timeout=30)
    seen = health(place)
    assert (seen.status, seen.out) == (4, "")
    assert seen.err.startswith("no_worker: no worker of this user runs on this host (looked in ")


def test_one_that_was_killed_is_nobody(place: Place, errands: Any) -> None:
    process = started(place, "runwick-supervise")
    process.kill()
    process.communicate(timeout=30)
    assert health(place).status == 4
    assert health(place, "--live").status == 4


def test_one_that_stands_still_is_neither_healthy_nor_alive(place: Place, errands: Any) -> None:
    process = started(place, "runwick worker")
    os.kill(process.pid, signal.SIGSTOP)
    wait_for(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED, "its standing still")
    (path,) = (place.folder / "run").glob("*.health")
    status = json.loads(path.read_text())
    status["seen"]["at_s"] = time.clock_gettime(time.CLOCK_BOOTTIME) - 31  # as if it had stood for so long
    path.write_text(json.dumps(status))
    seen = health(place)
    assert (seen.status, seen.out.startswith("degraded (stale) · errands")) == (1, True)
    seen = health(place, "--live")
    assert (seen.status, seen.out.startswith("unhealthy (stalled) · errands")) == (1, True)
    os.kill(process.pid, signal.SIGCONT)
    wait_for(lambda: health(place).status == 0, "its health")


def test_it_can_be_asked_for_one_of_several(place: Place, errands: Any) -> None:
    process = started(place, "runwick worker")
    assert health(place, "--application", "errands").status == 0
    assert health(place, "--pid", str(process.pid)).status == 0
    for other in (("--application", "thumbs"), ("--pid", "1")):
        seen = health(place, *other)
        assert (seen.status, seen.out) == (4, "")
        assert seen.err.startswith("no_worker: no such worker of this user runs on this host")
    seen = health(place, "--output", "json")
    (told,) = json.loads(seen.out)["workers"]
    assert (told["application"], told["process"], told["status"], told["reason"]) == (
        "errands",
        process.pid,
        "healthy",
        "ok",
    )


def test_of_several_the_worst_counts(place: Place, errands: Any) -> None:
    started(place, "runwick worker")
    place.write(SLOW, "slow")
    place.command("slow")
    wait_for(lambda: health(place).status == 1, "the start of a second one")
    assert sorted(line.split(" ")[0] for line in health(place).out.splitlines()) == ["healthy", "unhealthy"]
    assert health(place, "--application", "errands").status == 0
    (place.folder / "gate").touch()


def test_while_its_application_is_imported_it_lives_and_is_not_ready(place: Place) -> None:
    place.write(SLOW)
    place.program = WORKERS["runwick worker"]
    process = place.command("errands")
    wait_for(lambda: health(place).status == 1, "its start")
    assert health(place).out.startswith("unhealthy (starting) · not loaded yet · runwick worker ")
    assert health(place, "--live").status == 0
    (place.folder / "gate").touch()
    process.communicate(timeout=30)
    assert process.returncode == 2
    assert list((place.folder / "run").iterdir()) == []


def test_a_directory_that_cannot_be_is_refused(place: Place) -> None:
    program = [str(BIN / "runwick"), "health", "--run-dir", "run"]
    refused = subprocess.run(program, cwd=place.folder, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "must be an absolute path" in refused.stderr


def test_it_loads_no_store_and_nothing_of_an_application() -> None:
    program = (
        "import sys, runwick.cli.health;"
        "heavy = {'psycopg', 'sqlite3', 'redis', 'starlette', 'runwick.app', 'runwick.stores', 'runwick.worker'};"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"
