"""What an operator sets for executors that compute: threads of numeric libraries, cores, niceness, what is shared."""

import json
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.command.conftest import PATIENCE_S, Place, line_of, wait_for

LOOKS = """
import gc, os, subprocess, sys, threading
from runwick import Job, Runwick

rw = Runwick("looks", store="sqlite:///looks.db"{options})

@rw.job("looks.look")
class Look(Job):
    pass

@rw.handler
def look(job: Look) -> dict[str, object]:
    child = "import os; print(os.nice(0), *sorted(os.sched_getaffinity(0)))"
    return {{
        "threads": {{name: os.environ[name] for name in os.environ if name.endswith("_THREADS")}},
        "nice": os.nice(0),
        "cores": sorted(os.sched_getaffinity(0)),
        "child": [int(word) for word in subprocess.check_output([sys.executable, "-c", child]).split()],
        "frozen": gc.get_freeze_count(),
        "is_imported": "later" in sys.modules,
    }}
"""
VARIABLES = {
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
}


@pytest.fixture(autouse=True)
def _nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "RUNWICK_NUMERIC_THREADS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def looks(application: Any) -> Any:
    return application("looks", LOOKS.format(options=""))


def seen(place: Place, looks: Any, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a handler sees."""
    receipt = looks.rw.dispatch(looks.Look())
    status, _, err = place.run("looks", "--until-empty", "--executors", "1", *arguments, **environment)
    assert (status, err) == (0, "")
    found: dict[str, Any] = looks.rw.get(receipt).result(dict)
    return found


def refusal(place: Place, *arguments: str, **environment: str) -> str:
    status, out, err = place.run("looks", "--check", *arguments, **environment)
    assert (status, out) == (2, "")
    return err


def test_numeric_libraries_have_one_thread(place: Place, looks: Any) -> None:
    assert seen(place, looks)["threads"] == dict.fromkeys(VARIABLES, "1")


def test_an_option_says_another_number_above_the_environment(place: Place, looks: Any) -> None:
    assert seen(place, looks, "--numeric-threads", "3", RUNWICK_NUMERIC_THREADS="2")["threads"] == {
        **dict.fromkeys(VARIABLES, "3"),
        "RUNWICK_NUMERIC_THREADS": "2",
    }
    by_environment = seen(place, looks, RUNWICK_NUMERIC_THREADS="2")["threads"]
    assert by_environment.pop("RUNWICK_NUMERIC_THREADS") == "2"
    assert by_environment == dict.fromkeys(VARIABLES, "2")


def test_what_the_environment_says_of_a_library_holds(place: Place, looks: Any) -> None:
    found = seen(place, looks, "--numeric-threads", "2", MKL_NUM_THREADS="5")["threads"]
    assert found == {**dict.fromkeys(VARIABLES, "2"), "MKL_NUM_THREADS": "5"}
    found = seen(place, looks, OMP_NUM_THREADS="4")["threads"]
    assert found == {"OMP_NUM_THREADS": "4"} | dict.fromkeys(
        ("NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
    ), "libraries that go by it are not told otherwise"


def test_libraries_can_be_left_to_themselves(place: Place, looks: Any) -> None:
    assert seen(place, looks, "--numeric-threads", "inherit")["threads"] == {}


def test_a_number_of_threads_that_is_none_is_refused(place: Place, looks: Any) -> None:
    for text in ("0", "1025", "many", "+1"):
        assert f"expected a whole number from 1 to 1024, or inherit, got '{text}'" in refusal(
            place, "--numeric-threads", text
        )
    err = refusal(place, RUNWICK_NUMERIC_THREADS="all")
    assert err.startswith("Runwick cannot start: 1 problem.")
    assert "RUNWICK_NUMERIC_THREADS: expected a whole number from 1 to 1024, or inherit, got 'all'" in err


def test_executors_and_what_they_start_step_back(place: Place, looks: Any) -> None:
    own = os.nice(0)
    found = seen(place, looks, "--nice", "7", RUNWICK_NICE="3")
    assert (found["nice"], found["child"][0]) == (own + 7, own + 7)
    assert seen(place, looks, RUNWICK_NICE="3")["nice"] == own + 3
    assert seen(place, looks)["nice"] == own
    assert "20 is not in the range 0<=x<=19" in refusal(place, "--nice", "20")
    assert "nice (20) must be ≤ 19" in refusal(place, RUNWICK_NICE="20")


def test_the_command_line_stands_above_code(place: Place, application: Any) -> None:
    options = ", executors=ExecutorOptions(nice=4, pin=True)"
    text = LOOKS.format(options=options).replace("import Job,", "import ExecutorOptions, Job,")
    looks = application("looks", text)
    found = seen(place, looks)
    assert (found["nice"], len(found["cores"])) == (os.nice(0) + 4, 1)
    found = seen(place, looks, "--nice", "0", "--no-pin")
    assert (found["nice"], found["cores"]) == (os.nice(0), sorted(os.sched_getaffinity(0)))


def test_executors_take_the_usable_cores_in_turn(place: Place, errands: Any) -> None:
    usable = sorted(os.sched_getaffinity(0))
    running = place.command("errands", "--executors", "3", "--pin", "--nice", "5", "--log-format", "json")
    wait_for(lambda: json.loads(line_of(running))["event"] == "ready", "the worker")
    of_executors = {}
    for process in psutil.Process(running.pid).children(recursive=True):
        if (title := process.cmdline()[0]).startswith("runwick executor "):
            of_executors[int(title.split()[2])] = process
        else:
            assert process.cpu_affinity() == usable, "the zygote is free"
    cores = {number: process.cpu_affinity() for number, process in of_executors.items()}
    assert cores == {number: [usable[(number - 1) % len(usable)]] for number in (1, 2, 3)}
    niceness = {process.nice() for process in of_executors.values()}
    assert niceness == {os.nice(0) + 5}
    if Path("/proc/self/autogroup").exists():
        groups = [Path(f"/proc/{process.pid}/autogroup").read_text().split()[-1] for process in of_executors.values()]
        assert set(groups) == {str(os.nice(0) + 5)}, "their sessions step back for others'"
    supervisor = psutil.Process(running.pid)
    assert (supervisor.cpu_affinity(), supervisor.nice()) == (usable, os.nice(0))


def test_modules_are_imported_before_executors_are_forked(place: Place, looks: Any) -> None:
    place.write("", "later")
    assert seen(place, looks)["is_imported"] is False
    assert seen(place, looks, "--preload", "json,later")["is_imported"] is True
    assert seen(place, looks, RUNWICK_PRELOAD="later")["is_imported"] is True


def test_a_module_that_cannot_be_preloaded_is_refused_by_name(place: Place, looks: Any) -> None:
    place.write("1 / 0", "broken")
    err = refusal(place, "--preload", "broken")
    assert err.startswith("Runwick cannot start: 1 problem.")
    assert "import_failed" in err
    assert "broken" in err
    assert "ZeroDivisionError" in err
    assert "No module named 'nowhere'" in refusal(place, "--preload", "nowhere")


def test_what_is_shared_is_frozen_before_the_first_fork_and_after_a_reload(place: Place, looks: Any) -> None:
    def frozen() -> int:
        number: int = looks.rw.wait(looks.rw.dispatch(looks.Look()), timeout=timedelta(seconds=PATIENCE_S)).result(
            dict
        )["frozen"]
        return number

    running = place.command("looks", "--executors", "1", "--log-format", "json", "--progress-interval", "1h")
    wait_for(lambda: json.loads(line_of(running))["event"] == "ready", "the worker")
    assert frozen() > 10_000, "all that the application brought"
    running.send_signal(signal.SIGHUP)
    wait_for(lambda: json.loads(line_of(running))["event"] == "renewed", "executors of the next zygote")
    assert frozen() > 10_000
