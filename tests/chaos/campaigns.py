"""The campaigns on supervisors: what is killed or stopped, how often, and when.

::

    R1  executors are killed, some in the hand-off          R3  the server crashes
    R2  supervisors are killed, half restarted at once      R6  processes are stopped for longer than a lease

Each ends with a store that workers have emptied, and hands over the history of everything.
"""

import collections
import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil

from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.stores.sqlite.migrate import migrate
from tests.chaos.application import LEASE_MS
from tests.chaos.book import read_book, read_marks
from tests.chaos.clients import now_ms
from tests.chaos.field import EXECUTORS, SHARED_MEMORY, Field, end, send
from tests.chaos.history import Fault, History, Residue
from tests.chaos.limit_log import log_sqlite
from tests.chaos.needs import KINDS, LANES
from tests.chaos.reading import read_history, sqlite_rows
from tests.chaos.rehearsal import LEASE_MS as REHEARSED_LEASE_MS
from tests.chaos.writers import Part
from tests.conformance.ground import APPLICATION
from tests.kills.fire import ROOT, executors_of, wait_for
from tests.supervisor import strikes

R1_KILLS: Final = 200
R2_KILLS: Final = 50
R3_CRASHES: Final[Mapping[str, int]] = {"postgres": 5, "redis": 50}
"""By the store: Redis is there again in a tenth of a second."""
R3_KILLS: Final = 200
R6_PAUSES: Final = 10
_PAST_THE_LEASE_MS: Final = 700
"""Recovery comes first, then another holder: whoever stood still shows the resource an old token."""
_STRIKE_WITHIN_S: Final = 2.0
_CALM_READINGS: Final = 10
"""The parent is at rest when it has the same so many times, one after the other."""
_PROBES: Final = 4
"""Files of /proc that a parent reads of each executor. It opens them when it first does, so their number is bounded."""
_LATER: Final[Mapping[str, Mapping[str, int]]] = {
    "sqlite": {"descriptors": 4, "threads": 2},
    "postgres": {"descriptors": 2, "threads": 5},
    "redis": {"descriptors": 2, "threads": 5},
}
"""What a parent may have more of in the end, by the store, which opens some things when they are first needed: up to
two more connections when acts meet, each with a thread; of PostgreSQL the two threads of their pool as well, and one
that tells others of work. The event loop's own threads are not counted: Python makes them when it likes, up to a few
for each core."""


def killed_executors(store: str, seed: int, kills: int = R1_KILLS) -> History:
    """R1: SIGKILL for a random executor at a random moment, and every other time for whichever comes first to a random
    crossing of the hand-off; the supervisor lives through all of it."""
    dice = random.Random(seed)
    crossings = [dice.choice(strikes.CROSSINGS) if count % 2 else None for count in range(kills)]
    with Field(store, seed) as field, field.supervisor() as supervisor:
        field.loaded("the first runs")
        before = _belongings_at_rest(field, supervisor)
        for count in range(kills):
            time.sleep(0.06 * dice.random())
            victims = _some_executors(supervisor, f"an executor to kill, the {count + 1}th")
            crossing = crossings[count]
            if crossing is None or not _struck(field, crossing):
                field.fault("SIGKILL of an executor")
                send(dice.choice(victims), signal.SIGKILL)
            assert supervisor.poll() is None, "the supervisor ended"
        field.loaded("runs after the last kill")
        after = _belongings_at_rest(field, supervisor)
        field.residues += [
            Residue(f"{what} of the parent", count + _LATER[store].get(what, 0), after[what])
            for what, count in (before | {"probes": _PROBES * EXECUTORS}).items()
        ]
        supervisor.terminate()
        assert supervisor.wait(60) == 0
        field.drained()
        return field.history()


def killed_supervisors(store: str, seed: int, kills: int = R2_KILLS) -> History:
    """R2: SIGKILL for the supervisor under load. Every other time the next one starts before the old family is gone."""
    dice = random.Random(seed)
    with Field(store, seed) as field:
        shared_memory = _shared_memory()
        supervisor = field.start()
        for count in range(kills):
            field.loaded(f"load before kill {count + 1}")
            time.sleep(0.1 * dice.random())
            field.fault("SIGKILL of a supervisor")
            supervisor.send_signal(signal.SIGKILL)
            if count % 2:
                wait_for(lambda: field.processes() == [], "executors and zygote to follow their supervisor")
            dead, supervisor = supervisor, field.start()
            end(dead)
        end(supervisor)
        field.drained()
        field.residues.append(Residue("files in shared memory", shared_memory, _shared_memory()))
        return field.history()


def crashed_servers(store: str, seed: int, crashes: int | None = None) -> History:
    """R3: every process of the server is killed under load and started again."""
    crashes = R3_CRASHES[store] if crashes is None else crashes
    dice = random.Random(seed)
    with Field(store, seed, clients=3) as field, field.supervisor() as supervisor:
        assert field.server is not None
        for count in range(crashes):
            field.loaded(f"load before crash {count + 1}", marks=20)
            time.sleep(0.2 * dice.random())
            field.fault("SIGKILL of the server")
            field.server.kill()
            time.sleep(0.2 * dice.random())
            field.start_server()
        field.loaded("runs after the last crash", marks=20)
        assert supervisor.poll() is None, "the supervisor ended"
        supervisor.terminate()
        assert supervisor.wait(60) == 0
        field.drained()
        return field.history()


def killed_writers(store: str, seed: int, kills: int = R3_KILLS) -> History:
    """R3: writers of an SQLite file are killed in the middle of their transactions, one after the other."""
    assert store == "sqlite"
    with tempfile.TemporaryDirectory(prefix="runwick-chaos-") as place:
        folder = Path(place)
        migrate(folder / "jobs.db", SystemClock(), SystemIds())
        log_sqlite(folder / "jobs.db")
        command = [sys.executable, "-m", "tests.chaos.writers", str(folder), str(seed), str(kills)]
        subprocess.run(command, cwd=ROOT, check=True)
        part = Part(folder, seed)
        part.play.rest()
        history = read_history(
            part.play.bench.store,
            APPLICATION,
            sqlite_rows(folder / "jobs.db"),
            lanes=LANES,
            kinds=KINDS,
            lines=read_book(folder / "book.log"),
            marks=read_marks(folder / "marks.log"),
            followed=part.play.followed,
            read_at_ms=now_ms(),
            lease_ms=REHEARSED_LEASE_MS,
            faults=[Fault("SIGKILL of a writer", 0)] * kills,
        )
        part.close()
        return history


def paused(store: str, seed: int, pauses: int = R6_PAUSES) -> History:
    """R6: the parent, one executor, both, or the whole family stand still past their leases, beside another worker."""
    dice = random.Random(seed)
    with contextlib.ExitStack() as stack:
        field = stack.enter_context(Field(store, seed))
        supervisor = stack.enter_context(field.supervisor())
        field.loaded("the first runs")  # two that start at once may keep each other from registering in time
        other = stack.enter_context(field.supervisor("--queues", "default,narrow"))
        for count in range(pauses):
            field.loaded(f"load before pause {count + 1}", marks=20)
            what, stopped = _some_of(supervisor, count, dice)
            field.fault(f"SIGSTOP of {what}")
            for process in stopped:
                send(process, signal.SIGSTOP)
            time.sleep((LEASE_MS + _PAST_THE_LEASE_MS) / 1_000)
            field.fault(f"SIGCONT of {what}")
            for process in reversed(
                stopped
            ):  # the parent last: who has lost a lease may be its only judge for a moment
                send(process, signal.SIGCONT)
        field.loaded("runs after the last pause", marks=20)
        for each in (supervisor, other):
            assert each.poll() is None, "a supervisor ended"
            each.terminate()
            assert each.wait(60) == 0
        field.drained()
        return field.history()


def _some_of(supervisor: subprocess.Popen[bytes], count: int, dice: random.Random) -> tuple[str, list[psutil.Process]]:
    """Who stands still this time."""
    parent = psutil.Process(supervisor.pid)
    executors = _some_executors(supervisor, "an executor to pause")
    match count % 4:
        case 0:
            return "the parent", [parent]
        case 1:
            return "an executor", [dice.choice(executors)]
        case 2:
            return "parent and executors", [parent, *executors]
        case _:
            return "the family", [parent, *parent.children(recursive=True)]


def _some_executors(supervisor: subprocess.Popen[bytes], what: str) -> list[psutil.Process]:
    """Its executors, as soon as there is one."""
    found: list[psutil.Process] = []

    def look() -> bool:
        found[:] = executors_of(supervisor)
        return bool(found)

    wait_for(look, what)
    return found


def _struck(field: Field, crossing: str) -> bool:
    """Kill the first executor that comes to this crossing, or whose hand-off the parent has at it. False when nobody
    did for too long: for some of them something must happen that depends on the load."""
    order = strikes.order(field.strikes, crossing)
    until_s = time.monotonic() + _STRIKE_WITHIN_S
    while order.exists():
        if time.monotonic() > until_s and strikes.take(order):
            return False
        time.sleep(0.001)
    field.fault(f"SIGKILL of an executor at {crossing}")
    return True


def _belongings_at_rest(field: Field, supervisor: subprocess.Popen[bytes]) -> dict[str, int]:
    """What the parent has while nothing is done and every executor is there."""
    parent = psutil.Process(supervisor.pid)
    readings: collections.deque[dict[str, int]] = collections.deque(maxlen=_CALM_READINGS)

    def is_calm() -> bool:
        readings.append(_belongings(parent))
        calm = len(readings) == _CALM_READINGS and all(one == readings[0] for one in readings)
        return calm and readings[0]["zombies"] == 0 and len(executors_of(supervisor)) == EXECUTORS

    with field.resting():
        wait_for(is_calm, "the parent to come to rest")
    return readings[0]


def _belongings(parent: psutil.Process) -> dict[str, int]:
    proc = Path(f"/proc/{parent.pid}")
    files = []
    for descriptor in (proc / "fd").iterdir():
        with contextlib.suppress(OSError):  # it was closed meanwhile
            files.append(str(descriptor.readlink()))
    threads = [comm.read_text() for comm in proc.glob("task/*/comm")]
    children = parent.children()
    return {
        "descriptors": sum(not file.startswith("/proc/") for file in files),
        "probes": sum(file.startswith("/proc/") for file in files),
        "threads": sum(not thread.startswith("asyncio_") for thread in threads),
        "zombies": sum(child.is_running() and child.status() == "zombie" for child in children),
    }


def _shared_memory() -> int:
    """How many files lie there, but for servers' and for the folders in which tests keep these and files."""
    return sum(not path.name.startswith(("runwick-", "PostgreSQL.")) for path in SHARED_MEMORY.iterdir())
