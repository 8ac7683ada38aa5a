"""What signals do to `runwick-supervise` and to what it runs."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from tests.command.conftest import APPLICATION, Place, executor_at_work, line_of, terminate, wait_for
from tests.supervisor.crew import is_gone

PLAIN = APPLICATION.replace("job: Run, ctx: JobContext", "job: Run").replace("ctx.execution_number == 1", "False")
"""Its handler takes no context, so a request to stop reaches it at once, as an exception."""
STUBBORN = PLAIN.replace(
    """        while not Path(job.gate).exists():
            time.sleep(0.005)
""",
    """        while not Path(job.gate).exists():
            try:
                time.sleep(0.005)
            except BaseException:
                Path(job.gate + ".asked").touch()
""",
)
PATIENT = {
    "RUNWICK_SHUTDOWN_DRAIN": "2min",
    "RUNWICK_SHUTDOWN_CANCELLATION": "1min",
    "RUNWICK_SHUTDOWN_BUDGET": "4min",
    "RUNWICK_CANCELLATION_GRACE": "1min",
}
"""So that nothing but the next signal ends anything while a test lasts."""


@pytest.fixture
def held(place: Place, errands: Any) -> Iterator[Any]:
    """A job that holds its executor until it is let through the gate."""
    yield errands.rw.dispatch(errands.Run("hold", str(place.folder / "gate")))
    (place.folder / "gate").touch()


def started(place: Place, **environment: str) -> subprocess.Popen[str]:
    supervisor = place.command("errands", "--executors", "1", "--log-format", "json", **environment)
    wait_for((place.folder / "gate.started").exists, "the run")
    return supervisor


def event_of(process: subprocess.Popen[str], kind: str) -> dict[str, Any]:
    while True:
        event: dict[str, Any] = json.loads(line_of(process))
        if event["event"] == kind:
            return event


def ended(supervisor: subprocess.Popen[str]) -> list[str]:
    """The events until its end, which is a good one."""
    out, _ = supervisor.communicate(timeout=30)
    assert supervisor.returncode == 0
    return [json.loads(line)["event"] for line in out.splitlines()]


def outcome_of(errands: Any, receipt: Any) -> tuple[str, list[str]]:
    view = errands.rw.get(receipt)
    return view.state, [attempt.outcome for attempt in view.attempts]


def test_the_first_lets_run_the_second_asks(place: Place, errands: Any, held: Any) -> None:
    place.write(PLAIN)
    supervisor = started(place, **PATIENT)
    terminate(supervisor, signal.SIGINT)
    event_of(supervisor, "draining")
    terminate(supervisor, signal.SIGINT)
    assert "executor_stopped" not in ended(supervisor)
    assert outcome_of(errands, held) == ("retrying", ["interrupted"])


def test_the_third_kills_whatever_does_not_listen(place: Place, errands: Any, held: Any) -> None:
    place.write(STUBBORN)
    supervisor = started(place, **PATIENT)
    executor = executor_at_work(supervisor)
    os.killpg(supervisor.pid, signal.SIGTERM)
    event_of(supervisor, "draining")
    os.killpg(supervisor.pid, signal.SIGTERM)
    wait_for((place.folder / "gate.asked").exists, "the handler to be asked")
    assert not is_gone(executor)
    os.killpg(supervisor.pid, signal.SIGTERM)
    assert "executor_stopped" in ended(supervisor)
    assert outcome_of(errands, held) == ("retrying", ["interrupted"])
    assert is_gone(executor)


def test_f058_signals_to_the_whole_group_kill_no_executor_early(place: Place, errands: Any, held: Any) -> None:
    supervisor = started(place, **PATIENT)
    executor = executor_at_work(supervisor)
    os.killpg(supervisor.pid, signal.SIGTERM)
    event_of(supervisor, "draining")
    assert not is_gone(executor)
    (place.folder / "gate").touch()
    assert "executor_died" not in ended(supervisor)
    assert outcome_of(errands, held) == ("succeeded", ["succeeded"])


def test_a_stop_before_there_is_a_worker_leaves_nothing(place: Place, errands: Any) -> None:
    place.write("import time\nopen('importing', 'w').close()\ntime.sleep(60)\n" + APPLICATION)
    supervisor = place.command("errands")
    wait_for((place.folder / "importing").exists, "the import, which takes its time")
    terminate(supervisor, signal.SIGUSR1)
    terminate(supervisor)
    out, err = supervisor.communicate(timeout=30)
    assert (supervisor.returncode, out, err) == (0, "", "")
    assert not list((place.folder / "run").iterdir())


def test_usr1_shows_what_everything_is_at(place: Place, errands: Any, held: Any) -> None:
    supervisor = started(place)
    executor = executor_at_work(supervisor)
    terminate(supervisor, signal.SIGUSR1)
    shown = event_of(supervisor, "stack")
    assert (shown["executor"], shown["pid"], shown["job_id"]) == (1, executor, held.job_id)
    assert (shown["name"], shown["phase"]) == ("errands.run", "handle")
    assert " in run\n" in shown["text"]
    (place.folder / "gate").touch()
    terminate(supervisor)
    ended(supervisor)
    (attempt,) = errands.rw.get(held).attempts
    assert attempt.outcome == "succeeded"


IN_C = """
import re
from pathlib import Path
from runwick import Job, Runwick

rw = Runwick("loops", store="sqlite:///loops.db")

@rw.job("loops.match")
class Match(Job):
    started: str

@rw.job("loops.add")
class Add(Job):
    started: str

@rw.handler
def match(job: Match) -> None:
    Path(job.started).touch()
    re.match("(a*)*b", "a" * 64)

@rw.handler
def add(job: Add) -> None:
    Path(job.started).touch()
    sum(range(10**13))
"""
"""Both stay inside one call of C code, which hears no signal and lets nobody else have the interpreter."""


def test_usr1_shows_those_too_that_never_come_back_to_the_interpreter(
    place: Place, application: Callable[[str, str], Any]
) -> None:
    loops = application("loops", IN_C)
    for job in (loops.Match, loops.Add):
        loops.rw.dispatch(job(str(place.folder / job.__name__)))
    supervisor = place.command("loops", "--executors", "2", "--log-format", "json")
    wait_for(lambda: all((place.folder / name).exists() for name in ("Match", "Add")), "both loops")
    executors = {pid for pid in psutil.Process(supervisor.pid).children() if "executor" in pid.cmdline()[0]}
    for _ in range(2):  # and it can be asked again
        terminate(supervisor, signal.SIGUSR1)
        shown = {stack["name"]: stack for stack in (event_of(supervisor, "stack") for _ in range(2))}
        assert {stack["pid"] for stack in shown.values()} == {executor.pid for executor in executors}
        assert " in match\n" in shown["loops.match"]["text"]
        assert " in add\n" in shown["loops.add"]["text"]
    assert all(executor.is_running() for executor in executors)


def test_a_hang_up_that_is_ignored_at_the_start_stays_ignored(place: Place, errands: Any, held: Any) -> None:
    """As `nohup` starts it."""
    program = place.program
    place.program = ("/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *program)
    supervisor = started(place)
    terminate(supervisor, signal.SIGHUP)
    terminate(supervisor, signal.SIGUSR1)
    heard: list[str] = []
    while "stack" not in heard:
        heard.append(json.loads(line_of(supervisor))["event"])
    assert not {"reloaded", "reload_refused", "draining"} & set(heard)
    (place.folder / "gate").touch()
    terminate(supervisor)
    assert not {"reloaded", "reload_refused"} & set(ended(supervisor))


def test_a_terminal_that_closes_drains(place: Place, errands: Any, held: Any) -> None:
    ours, terminal = pty.openpty()
    supervisor = subprocess.Popen(
        [*place.program, "errands", "--executors", "1"],
        cwd=place.folder,
        env={**os.environ, "RUNWICK_RUN_DIR": str(place.folder / "run")},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    try:
        wait_for((place.folder / "gate.started").exists, "the run")
        os.close(ours)
        supervisor.send_signal(signal.SIGHUP)  # the kernel sends it to who has the terminal as its own
        (place.folder / "gate").touch()
        assert supervisor.wait(30) == 0
    finally:
        if supervisor.poll() is None:
            supervisor.kill()
            supervisor.wait()
    assert outcome_of(errands, held) == ("succeeded", ["succeeded"])
    assert not list((place.folder / "run").iterdir())
