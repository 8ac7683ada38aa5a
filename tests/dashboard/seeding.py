"""The store of `tests.dashboard.darkroom` with real runs in it, one that goes on, and texts that nobody should
trust."""

import contextlib
import datetime
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from runwick import BatchItem, DispatchOptions, ManagementActor, Runwick
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.dispatching import COMMAND_LIFETIME_MAX_MS, Command
from runwick.contracts.identity import id_text, job_of_operation
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority
from tests.dashboard.darkroom import MARKER, Develop, Hold, Mount, Send, application

PATIENCE_S = 40.0
LATER = datetime.timedelta(days=1)
CROWD = "studio"
"""The tenant of 110 jobs alike, more than one walk reads at once."""


class Seeded(NamedTuple):
    """What is in the store, by UUID text."""

    rw: Runwick
    succeeded: str
    torn: str
    """Failed after two tries, with the marker in its error."""
    crashed: str
    running: str
    hostile: str
    """Waits, and whatever is text in it is the marker."""
    waiting: list[str]
    """Alike, for tests to act on."""


@contextlib.contextmanager
def seeded(folder: Path) -> Iterator[Seeded]:
    """Make the store, run what ends, and keep a supervisor at what does not."""
    rw = application(f"sqlite:///{folder / 'darkroom.db'}")
    rw.migrate()
    films = [rw.dispatch(Develop(f"roll {at}", "f" * (400 * at * at))) for at in range(1, 25)]
    mounts = [rw.dispatch(Mount(how)) for how in ("tear", "refuse", "crash", "stumble", "straight", "straight")]
    subprocess.run(
        **_command(folder, "--until-empty"), timeout=PATIENCE_S
    )  # it ends with a status of its own, since some fail
    for to in ("north", "south", "east", "west", MARKER):  # more than may begin within the hour
        rw.dispatch(Send(to), tenant="harbour")
    gate = folder / "gate"
    running = rw.dispatch(Hold(str(gate)))
    waiting = list(rw.dispatch_many([_later(at, None) for at in range(60)]))
    for part in (range(100), range(100, 110)):
        rw.dispatch_many([_later(at, CROWD) for at in part])
    hostile = _dispatched_raw(rw)
    rw.controls.cancel(rw.get(waiting.pop()).target, ManagementActor("ops", MARKER, "service"), reason=MARKER)
    supervisor = subprocess.Popen(**_command(folder))
    try:
        until_s = time.monotonic() + PATIENCE_S
        while rw.get(running).state != "running" or not _told(rw):
            assert time.monotonic() < until_s, "the run that is held never began"
            time.sleep(0.02)
        yield Seeded(
            rw=rw,
            succeeded=films[-1].job_id,
            torn=mounts[0].job_id,
            crashed=mounts[2].job_id,
            running=running.job_id,
            hostile=hostile,
            waiting=[receipt.job_id for receipt in waiting],
        )
    finally:
        gate.touch()
        supervisor.send_signal(signal.SIGTERM)
        supervisor.wait(PATIENCE_S)
        rw.close()


def _later(at: int, tenant: str | None) -> BatchItem:
    return BatchItem(Develop(f"later {at}", ""), DispatchOptions(not_before=LATER, tenant=tenant))


def _told(rw: Runwick) -> bool:
    return any(executor.name for worker in rw.workers() for executor in worker.executors)


def _dispatched_raw(rw: Runwick) -> str:
    """A job such as no declaration would let through: its type, queue, tenant and key are the marker."""
    operation_id = rw.ids.ordered()
    command = Command(
        operation_id=operation_id,
        job_id=job_of_operation(operation_id),
        deadline_ms=rw.store.now_ms() + COMMAND_LIFETIME_MAX_MS,
        application=rw.application,
        kind=Kind(MARKER, 1),
        lane=Lane(MARKER, Priority.HIGH),
        policy=JobPolicy(),
        payload=b'{"picture": "<script>document.title=1</script>", "number": 1e400}',
        tenant=MARKER,
        active_key=MARKER,
    )
    rw.store.run(rw.store.dispatch([command]))
    return id_text(command.job_id)


def _command(folder: Path, *arguments: str) -> dict[str, Any]:
    """How the supervisor is started on the store."""
    places = {"RUNWICK_STORE": f"sqlite:///{folder / 'darkroom.db'}", "RUNWICK_RUN_DIR": str(folder / "run")}
    return {
        "args": [sys.executable, "-m", "runwick_supervisor.command", "tests.dashboard.darkroom", *arguments],
        "env": {**os.environ, **places},
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "start_new_session": True,
    }
