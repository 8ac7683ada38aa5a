"""A worker that was killed, and the next one on the same host: its jobs run again at once, not when leases run out."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.command.conftest import Place, executor_at_work, line_of, terminate, wait_for
from tests.supervisor.crew import is_gone

BIN = Path(sys.executable).parent


def holding(place: Place, errands: Any, gate: str = "gate", **environment: str) -> tuple[Any, subprocess.Popen[str]]:
    """A job that holds its executor, and the supervisor that runs it; its lease is a minute."""
    receipt = errands.rw.dispatch(errands.Run("hold", str(place.folder / gate)))
    supervisor = place.command("errands", "--executors", "1", "--log-format", "json", **environment)
    wait_for((place.folder / f"{gate}.started").exists, "the run")
    (place.folder / f"{gate}.started").unlink()
    return receipt, supervisor


def event_of(process: subprocess.Popen[str], *kinds: str) -> dict[str, Any]:
    """The next event of one of these kinds."""
    while True:
        event: dict[str, Any] = json.loads(line_of(process))
        if event["event"] in kinds:
            return event


def run_files(place: Place) -> int:
    return len(list((place.folder / "run").glob("*.run")))


def drained(supervisor: subprocess.Popen[str]) -> bool:
    terminate(supervisor)
    supervisor.communicate(timeout=30)
    return supervisor.returncode == 0


def stop_between_writes(supervisor: subprocess.Popen[str], place: Place) -> None:
    """Make it stand still while it does not hold the file's one write lock, with which nobody could start."""
    with contextlib.closing(sqlite3.connect(place.folder / "errands.db", timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        os.kill(supervisor.pid, signal.SIGSTOP)
        wait_for(lambda: psutil.Process(supervisor.pid).status() == psutil.STATUS_STOPPED, "its standing still")
        other.execute("ROLLBACK")


def test_f037_f041b_jobs_of_a_killed_supervisor_run_again_at_once(place: Place, errands: Any) -> None:
    receipt, first = holding(place, errands)
    executor = executor_at_work(first)
    first.kill()
    second = place.command("errands", "--executors", "1", "--log-format", "json")
    recovered = event_of(second, "predecessor_recovered")
    assert (recovered["count"], is_gone(executor)) == (1, True)
    wait_for((place.folder / "gate.started").exists, "the second run")
    (place.folder / "gate").touch()
    wait_for(lambda: errands.rw.get(receipt).state == "succeeded", "its end")
    assert [attempt.code for attempt in errands.rw.get(receipt).attempts] == ["worker_died", None]
    assert run_files(place) == 1
    assert drained(second)
    assert run_files(place) == 0


def test_a_neighbour_that_stands_still_is_not_taken_for_dead(place: Place, errands: Any) -> None:
    receipt, first = holding(place, errands)
    stop_between_writes(first, place)
    second = place.command("errands", "--executors", "1", "--log-format", "json")
    event_of(second, "ready")
    assert errands.rw.get(receipt).state == "running"
    os.kill(first.pid, signal.SIGCONT)
    assert drained(second)
    (place.folder / "gate").touch()
    wait_for(lambda: errands.rw.get(receipt).state == "succeeded", "its end")
    assert len(errands.rw.get(receipt).attempts) == 1
    assert drained(first)


def test_two_who_start_at_once_recover_once(place: Place, errands: Any) -> None:
    receipt, first = holding(place, errands)
    first.kill()
    both = [place.command("errands", "--executors", "1", "--log-format", "json") for _ in range(2)]
    wait_for((place.folder / "gate.started").exists, "the second run")
    (place.folder / "gate").touch()
    wait_for(lambda: errands.rw.get(receipt).state == "succeeded", "its end")
    events: list[str] = []
    for supervisor in both:
        terminate(supervisor)
        out, _ = supervisor.communicate(timeout=30)
        events += [json.loads(line)["event"] for line in out.splitlines()]
    assert events.count("predecessor_recovered") == 1
    assert [attempt.code for attempt in errands.rw.get(receipt).attempts] == ["worker_died", None]
    assert run_files(place) == 0


def test_what_was_killed_on_another_store_is_not_touched(place: Place, errands: Any) -> None:
    receipt, first = holding(place, errands)
    first.kill()
    first.wait()
    url = f"sqlite:///{place.folder / 'other.db'}"
    migrate = [str(BIN / "runwick"), "migrate", "--app", "errands"]
    subprocess.run(migrate, cwd=place.folder, env={**os.environ, "RUNWICK_STORE": url}, check=True, capture_output=True)
    status, out, _ = place.run("errands", "--until-empty", "--log-format", "json", RUNWICK_STORE=url)
    assert (status, "predecessor_recovered" in out, run_files(place)) == (0, False, 1)
    assert errands.rw.get(receipt).state == "running"


def test_jobs_of_a_killed_worker_with_threads_run_again_at_once(place: Place, errands: Any) -> None:
    place.program = (str(BIN / "runwick"), "worker")
    receipt = errands.rw.dispatch(errands.Run("hold", str(place.folder / "gate")))
    first = place.command("errands")
    wait_for((place.folder / "gate.started").exists, "the run")
    first.kill()
    first.wait()
    (place.folder / "gate").touch()
    status, out, err = place.run("errands", "--until-empty", "--log-format", "json")
    assert (status, err, "predecessor_recovered" in out, run_files(place)) == (0, "", True, 0)
    assert errands.rw.get(receipt).state == "succeeded"


def test_f062_what_a_stop_could_not_write_is_recovered_by_the_next_start(place: Place, errands: Any) -> None:
    receipt, first = holding(place, errands)
    terminate(first)
    event_of(first, "draining")
    first.kill()
    (place.folder / "gate").touch()
    status, out, _ = place.run("errands", "--until-empty", "--log-format", "json")
    assert (status, "predecessor_recovered" in out) == (0, True)
    assert errands.rw.get(receipt).state == "succeeded"


def test_a_check_leaves_no_file_and_a_bad_directory_is_one_problem(place: Place, errands: Any) -> None:
    assert place.run("errands", "--check")[0] == 0
    assert not (place.folder / "run").exists()
    for program in ((sys.executable, "-m", "runwick_supervisor.command"), (str(BIN / "runwick"), "worker")):
        place.program = program
        status, _, err = place.run("errands", "--run-dir", "run")
        assert (status, "--run-dir: run must be an absolute path." in err) == (2, True)
        status, _, err = place.run("errands", RUNWICK_RUN_DIR="/dev/null")
        assert (status, "RUNWICK_RUN_DIR: /dev/null is no directory." in err) == (2, True)


def test_every_process_of_a_worker_holds_the_lock(place: Place, errands: Any) -> None:
    _, supervisor = holding(place, errands)
    (file,) = (place.folder / "run").glob("*.run")
    family = [psutil.Process(supervisor.pid), *psutil.Process(supervisor.pid).children(recursive=True)]
    assert len(family) == 3, "the parent, its zygote, one executor"
    for process in family:
        assert file in [link.readlink() for link in Path(f"/proc/{process.pid}/fd").iterdir()]
    (place.folder / "gate").touch()
    assert drained(supervisor)


DEPUTY = """
import subprocess, time
from pathlib import Path
from runwick import Job, Runwick

rw = Runwick("deputies", store="sqlite:///deputies.db")

@rw.job("deputies.send")
class Send(Job):
    folder: str

@rw.handler
def send(job: Send) -> None:
    folder = Path(job.folder)
    if (earlier := folder / "deputy").exists():
        lives = Path(f"/proc/{earlier.read_text()}/stat")
        runs = lives.exists() and lives.read_text().rpartition(")")[2].split()[0] != "Z"
        (folder / "second").write_text("beside the first" if runs else "alone")
        return
    deputy = subprocess.Popen(["sleep", "600"])
    (folder / "deputy.unfinished").write_text(str(deputy.pid))
    (folder / "deputy.unfinished").rename(folder / "deputy")
    deputy.wait()
"""


def test_a_zygote_that_stands_still_when_its_supervisor_is_killed_delays_nothing(
    place: Place, application: Callable[[str, str], Any]
) -> None:
    """Only it kills what handlers started; while it does not, nobody may run their jobs again."""
    deputies = application("deputies", DEPUTY)
    receipt = deputies.rw.dispatch(deputies.Send(str(place.folder)))
    first = place.command("deputies", "--executors", "1", "--log-format", "json")
    wait_for((place.folder / "deputy").exists, "the run")
    family = psutil.Process(first.pid).children(recursive=True)
    (zygote,) = [child for child in family if child.cmdline()[0].startswith("runwick zygote")]
    zygote.suspend()
    try:
        first.kill()
        second = place.command("deputies", "--executors", "1", "--log-format", "json")
        assert event_of(second, "predecessor_recovered")["count"] == 1
        wait_for(lambda: deputies.rw.get(receipt).state == "succeeded", "the second run")
    finally:
        for process in family:
            if process.is_running():
                process.kill()
    assert (place.folder / "second").read_text() == "alone"
    assert [attempt.code for attempt in deputies.rw.get(receipt).attempts] == ["worker_died", None]
    assert all(is_gone(process.pid) for process in family)
    assert drained(second)
    assert run_files(place) == 0


STREAM = """
import fcntl, os, time
from pathlib import Path
from runwick import Job, Runwick

rw = Runwick("streams", store="sqlite:///streams.db")

@rw.job("streams.pass", max_executions=100)
class Pass(Job):
    folder: str
    number: int

@rw.handler
def through(job: Pass) -> None:
    own = os.open(f"{job.folder}/{job.number}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        Path(job.folder, f"{job.number} ran twice at once").touch()
        raise
    os.write(own, b".")
    time.sleep(0.01)
    os.close(own)
"""
RESTARTS = 20


def test_twenty_kills_in_a_row_under_a_stream_of_jobs_lose_and_double_and_leave_nothing(
    place: Place, application: Callable[[str, str], Any]
) -> None:
    streams = application("streams", STREAM)
    memory_files = named_memory()
    runs = place.folder / "runs"
    runs.mkdir()
    receipts: list[Any] = []
    interrupted = 0
    for restart in range(RESTARTS):
        supervisor = place.command("streams", "--executors", "2", "--log-format", "json")
        begun = len(list(runs.iterdir()))
        receipts += [streams.rw.dispatch(streams.Pass(str(runs), len(receipts) + more)) for more in range(20)]
        # Each time at another point: after some runs, or before the first one.
        wait_for(lambda: len(list(runs.iterdir())) >= begun + restart % 7, "some runs")  # noqa: B023 - called at once
        supervisor.kill()
    status, _, err = place.run("streams", "--executors", "2", "--until-empty", "--log-format", "json")
    assert (status, err) == (0, "")
    for receipt in receipts:
        job = streams.rw.get(receipt)
        outcomes = [attempt.outcome for attempt in job.attempts]
        assert (job.state, outcomes.count("succeeded"), outcomes[-1]) == ("succeeded", 1, "succeeded"), outcomes
        interrupted += len(outcomes) - 1
    assert interrupted, "no kill hit a run: this proves nothing"
    assert sorted(file.name for file in runs.iterdir()) == sorted(str(number) for number in range(len(receipts)))
    assert all(file.stat().st_size for file in runs.iterdir())
    wait_for(lambda: not working_in(place.folder), "every process to be gone")
    assert run_files(place) == 0
    wait_for(lambda: named_memory() <= memory_files, "nothing more in shared memory than before")


def working_in(folder: Path) -> list[psutil.Process]:
    """Processes of supervisors that were started there, the dead left out."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.cwd() == str(folder):
                found.append(process)
    return found


def named_memory() -> set[str]:
    """Files in the shared memory of the host, without those of databases."""
    memory = Path("/dev/shm")
    return {file.name for file in memory.iterdir() if file.is_file() and not file.name.startswith("PostgreSQL.")}
