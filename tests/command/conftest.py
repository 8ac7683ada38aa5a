"""An application in a folder of its own, its store, and the command on it."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from runwick import Runwick
from runwick.app.locate import locate

PATIENCE_S = 30.0

APPLICATION = """
import datetime, os, time
from pathlib import Path
from runwick import Job, JobContext, PermanentJobFailure, Runwick

rw = Runwick("errands", store="sqlite:///errands.db")

@rw.job("errands.run", queue="errands", max_executions=2, retry_delay=(datetime.timedelta(milliseconds=1),) * 2)
class Run(Job):
    what: str = "nothing"
    gate: str = ""

@rw.job("errands.other", queue="others")
class Other(Job):
    pass

@rw.handler
def run(job: Run, ctx: JobContext) -> str:
    if job.what == "hold":
        Path(job.gate + ".started").touch()
        while not Path(job.gate).exists():
            time.sleep(0.005)
    if job.what == "fail":
        raise PermanentJobFailure("no_such_errand", "it cannot be run")
    if job.what == "stumble" and ctx.execution_number == 1:
        raise ValueError("once")
    return job.what

@rw.handler
def other(job: Other) -> None: ...
"""


class Place:
    """The folder, and what can be done in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program: Sequence[str] = (sys.executable, "-m", "runwick_supervisor.command")
        """What `command` starts."""
        self._started: list[subprocess.Popen[str]] = []

    def write(self, text: str, name: str = "errands") -> None:
        (self.folder / f"{name}.py").write_text(textwrap.dedent(text))

    def command(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start the program in the folder, in a session of its own."""
        process = subprocess.Popen(
            [*self.program, *arguments],
            cwd=self.folder,
            env={**os.environ, "RUNWICK_RUN_DIR": str(self.folder / "run"), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Run it to its end: exit status, standard output, standard error."""
        process = self.command(*arguments, **environment)
        out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out, err

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("COLUMNS", "400")
    place = Place(tmp_path)
    yield place
    place.end()


@pytest.fixture
def application(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Any]]:
    """Writes an application into the place, by its name and text, and answers it as its producer has it: a module with
    `rw` and the jobs, on a migrated store."""
    opened: list[Runwick] = []

    def write(name: str, text: str) -> Any:
        place.write(text, name)
        monkeypatch.chdir(place.folder)
        rw = locate(name, place.folder)
        assert isinstance(rw, Runwick)
        opened.append(rw)
        rw.migrate()
        return sys.modules.pop(name)

    yield write
    for rw in opened:
        rw.close()
        sys.path.remove(str(place.folder))


@pytest.fixture
def errands(application: Callable[[str, str], Any]) -> Any:
    """`APPLICATION`: a module with `rw`, `Run` and `Other`."""
    return application("errands", APPLICATION)


def wait_for(condition: Callable[[], object], what: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, f"waited in vain for {what}"
        time.sleep(0.005)


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that it prints."""
    assert process.stdout is not None
    return process.stdout.readline()


def summary_of(output: str) -> dict[str, Any]:
    last: dict[str, Any] = json.loads(output.splitlines()[-1])
    assert last["event"] == "summary"
    return last


def family_of(process: subprocess.Popen[str]) -> list[str]:
    """Titles of the processes below a supervisor."""
    return [child.cmdline()[0] for child in psutil.Process(process.pid).children(recursive=True) if child.cmdline()]


def executor_at_work(process: subprocess.Popen[str], what: str = "errands: errands.run") -> int:
    """The pid of the one executor that runs that."""
    (pid,) = [
        child.pid
        for child in psutil.Process(process.pid).children(recursive=True)
        if any(what in part for part in child.cmdline())
    ]
    return pid


def terminate(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> None:
    process.send_signal(number)
