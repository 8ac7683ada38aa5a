"""A supervisor that is told to load its application anew, and what it says of that."""

import contextlib
import json
import signal
import subprocess
from typing import Any

import psutil

from tests.command.conftest import APPLICATION, Place, line_of, terminate, wait_for

FRESH = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Two writes of one module in one second must not be taken for one."""
TWO = APPLICATION.replace("return job.what", 'return "new " + job.what')


def started(place: Place, *arguments: str, executors: str = "2", **environment: str) -> subprocess.Popen[str]:
    options = ("--executors", executors, "--log-format", "json", *arguments)
    supervisor = place.command("errands", *options, **FRESH, **environment)
    event_of(supervisor, "ready")
    return supervisor


def event_of(process: subprocess.Popen[str], *kinds: str) -> dict[str, Any]:
    while True:
        event: dict[str, Any] = json.loads(line_of(process))
        if event["event"] in kinds:
            return event


def reload(supervisor: subprocess.Popen[str]) -> dict[str, Any]:
    """Have it loaded anew; what it says of that."""
    supervisor.send_signal(signal.SIGHUP)
    return event_of(supervisor, "reloaded", "reload_refused")


def renewed(supervisor: subprocess.Popen[str]) -> None:
    """Have it loaded anew, and wait until nothing runs on the former code."""
    assert reload(supervisor)["event"] == "reloaded"
    event_of(supervisor, "renewed")


def done(errands: Any, *receipts: Any) -> list[Any]:
    wait_for(lambda: all(errands.rw.get(receipt).state == "succeeded" for receipt in receipts), "the ends of the jobs")
    return [errands.rw.get(receipt).result(str) for receipt in receipts]


def drained(supervisor: subprocess.Popen[str]) -> list[dict[str, Any]]:
    terminate(supervisor)
    out, err = supervisor.communicate(timeout=30)
    assert (supervisor.returncode, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def children(supervisor: subprocess.Popen[str], kind: str) -> list[int]:
    """Pids of its living children of this kind."""
    found = []
    for child in psutil.Process(supervisor.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            if f"runwick {kind}" in "".join(child.cmdline()):
                found.append(child.pid)
    return found


def zygotes(supervisor: subprocess.Popen[str]) -> list[int]:
    return children(supervisor, "zygote")
