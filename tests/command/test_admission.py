"""`runwick-supervise` while an operator drains or maintains its application."""

import json
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from runwick.app.stores import open_administration
from runwick.contracts.administration import Administration, Admission
from runwick.runtime.ambient import SystemClock, SystemIds
from tests.command.conftest import Place, line_of, terminate, wait_for
from tests.supervisor.crew import is_gone


def administration(errands: Any) -> Administration:
    return open_administration(errands.rw.store_url, SystemClock(), SystemIds())


def put_into(errands: Any, *modes: Admission) -> None:
    """Lead the application through these modes."""
    operator = administration(errands)
    try:
        for mode in modes:
            operator.set_admission(mode, "errands")
    finally:
        operator.close()


def test_a_drained_application_lets_no_worker_in(place: Place, errands: Any) -> None:
    receipt = errands.rw.dispatch(errands.Run())
    put_into(errands, Admission.DRAIN)
    status, out, err = place.run("errands", "--until-empty")
    assert (status, "ready" in out, "register" in out) == (1, False, False)
    assert err.startswith("runwick-supervise cannot start: admission_closed: ")
    assert (err.count("\n"), "being drained" in err) == (1, True)
    assert errands.rw.get(receipt).state == "pending"


def test_a_check_is_no_start(place: Place, errands: Any) -> None:
    errands.rw.dispatch(errands.Run())
    put_into(errands, Admission.DRAIN)
    status, out, _ = place.run("errands", "--check")
    assert (status, "nothing is wrong" in out) == (0, True)


def test_a_running_worker_ends_what_runs_and_goes_on_when_the_application_is_opened_again(
    place: Place, errands: Any
) -> None:
    gate = place.folder / "gate"
    held = errands.rw.dispatch(errands.Run("hold", str(gate)))
    supervisor = place.command("errands", "--executors", "1", "--log-format", "json")
    wait_for((place.folder / "gate.started").exists, "the run")
    waiting = errands.rw.dispatch(errands.Run())
    put_into(errands, Admission.DRAIN)
    gate.touch()
    wait_for(lambda: errands.rw.get(held).state == "succeeded", "the settlement")
    heard: list[str] = []
    while "claims_refused" not in heard:
        heard.append(json.loads(line_of(supervisor))["event"])
    assert errands.rw.get(waiting).state == "pending"
    put_into(errands, Admission.OPEN)
    wait_for(lambda: errands.rw.get(waiting).state == "succeeded", "the other job")
    terminate(supervisor)
    out, _ = supervisor.communicate(timeout=30)
    later = [json.loads(line)["event"] for line in out.splitlines()]
    assert (supervisor.returncode, "claims_admitted" in later, "claims_refused" in later) == (0, True, False)


@pytest.mark.parametrize("command", ["runwick-supervise", "runwick worker"])
def test_another_store_in_its_place_stops_the_runs_and_ends_the_worker(
    command: str, place: Place, errands: Any
) -> None:
    gate = place.folder / "gate"
    held = errands.rw.dispatch(errands.Run("hold", str(gate)))
    if command == "runwick worker":
        place.program = (str(Path(sys.executable).parent / "runwick"), "worker")
    worker = place.command("errands", "--log-format", "json", "--progress-interval", "10min")
    wait_for((place.folder / "gate.started").exists, "the run")
    family = [child.pid for child in psutil.Process(worker.pid).children(recursive=True)]
    for file in place.folder.glob("errands.db*"):
        file.rename(file.with_name(f"moved-{file.name}"))
    errands.rw.migrate()
    out, err = worker.communicate(timeout=30)
    told = [json.loads(line) for line in out.splitlines()]
    assert (worker.returncode, told[-1]["event"]) == (1, "failed")
    (broken,) = [event for event in told if event["event"] == "history_broken"]
    assert broken["leases"] == 1
    assert "Traceback" not in err
    wait_for(lambda: all(map(is_gone, family)), "its processes to end")
    errands.rw.close()
    for file in place.folder.glob("moved-errands.db*"):
        file.rename(file.with_name(file.name.removeprefix("moved-")))
    assert errands.rw.get(held).state == "running", "nothing was written for it"
