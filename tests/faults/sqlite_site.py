"""A file in which every act has something to do, copies of it to spoil, and what is in them afterwards."""

import itertools
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from runwick.config.options import SqliteOptions
from runwick.contracts.activity import ExecutorActivity, Mark, Report, StackAnswer
from runwick.contracts.attempts import Attempt, Kind
from runwick.contracts.controls import ControlAction, JobTarget
from runwick.contracts.outcomes import BlackBox, Death, IfCancelled, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores.sqlite.store import SqliteStore
from tests.ambient import FakeClock
from tests.conformance.ground import (
    APPLICATION,
    HIGH,
    KINDS,
    LARGE,
    LEASE_MS,
    RECOVERY_MS,
    SUCCESS,
    Bench,
    held,
    sqlite_bench,
)
from tests.conformance.scene import LANES, NEW_KIND, NEW_LANE, Scene, set_scene

CRASH: Final = Outcome(
    OutcomeKind.CRASHED, code="executor_crashed", death=Death("signal", 9), black_box=BlackBox("lines", "stack")
)
IF_CANCELLED: Final = IfCancelled(OutcomeKind.CANCELLED, "cancel_requested")

Make = Callable[[SqliteStore], Act[Any]]
Opened = Callable[[Path], tuple[Callable[[], Any], Callable[[], None]]]
"""Makes an operation on a file, to be run as often as needed, and what closes it."""
State = dict[str, list[tuple[Any, ...]]]


class SameIds:
    """The ids of a second try are those of the first, so that the files can be compared."""

    def ordered(self) -> bytes:
        return (7).to_bytes(16)

    def secret(self) -> bytes:
        return (8).to_bytes(16)


class Site:
    """A file to begin from, and copies of it to spoil."""

    def __init__(self, folder: Path) -> None:
        self.start = folder / "start.db"
        self.clock = FakeClock()
        self._copies = (folder / f"{number}.db" for number in itertools.count())

    def copy(self) -> Path:
        return Path(shutil.copy(self.start, next(self._copies)))

    def store(self, path: Path) -> SqliteStore:
        return SqliteStore(path, options=SqliteOptions(), clock=self.clock, ids=SameIds())


@pytest.fixture
def site() -> Iterator[Site]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="runwick-faults-", dir=memory if memory.is_dir() else None) as folder:
        yield Site(Path(folder))


class Stage(NamedTuple):
    """What stands in the start file, who made it, and what is there besides the scene."""

    bench: Bench
    scene: Scene
    cancelled: list[Attempt]
    """Leased and asked to stop; the last one has not begun."""
    waits: JobTarget
    """A job that is due."""


@pytest.fixture
def stage(site: Site, tmp_path: Path) -> Stage:
    bench = sqlite_bench(tmp_path)
    scene = set_scene(bench)
    bench.dispatch(payload=LARGE)
    cancelled = bench.claim().attempts
    bench.cancel(*(attempt.job_id for attempt in cancelled))
    bench.control(bench.order(ControlAction.LOOK, scene.running.job_id))
    (waiting,) = bench.dispatch()
    waits = bench.target(waiting)
    bench.store.close()
    site.clock = bench.clock
    shutil.copy(tmp_path / "jobs.db", site.start)
    return Stage(bench, scene, cancelled, waits)


def state_of(path: Path) -> State:
    """All that is in the file."""
    connection = sqlite3.connect(path)
    try:
        tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name LIKE 'runwick%'").fetchall()
        rows = {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()
            for name, text in tables
            if text.startswith("CREATE TABLE")
        }
        return {"schema": sorted(tables), **rows}
    finally:
        connection.close()


class Undisturbed(NamedTuple):
    """What an operation does when nothing fails."""

    before: State
    first: Any
    """Its answer."""
    after: State
    second: Any
    """Its answer when it is sent again, which changes nothing."""


def undisturbed(site: Site, opened: Opened) -> Undisturbed:
    path = site.copy()
    before = state_of(path)
    run, close = opened(path)
    first, after, second = run(), state_of(path), run()
    assert state_of(path) == after
    close()
    return Undisturbed(before, first, after, second)


def on_open_store(site: Site, make: Make) -> Opened:
    """An act on a store that is open already."""

    def opened(path: Path) -> tuple[Callable[[], Any], Callable[[], None]]:
        store = site.store(path)
        store.check()
        store.run(store.resolve(APPLICATION, bytes(16)))  # so that a reader is open too
        return lambda: store.run(make(store)), store.close

    return opened


def decided(attempt: Attempt) -> Settlement:
    """What recovery writes."""
    abandoned = Outcome(OutcomeKind.ABANDONED, code="lease_lost")
    return Settlement(attempt, abandoned, JobState.RETRYING, delay_ms=0, if_cancelled=IF_CANCELLED)


def settlements(stage: Stage) -> list[Settlement]:
    failed = Settlement(stage.scene.lapsed, CRASH, JobState.RETRYING, "executor_crashed", 1_000, IF_CANCELLED)
    return [
        Settlement(stage.scene.running, SUCCESS, JobState.SUCCEEDED),
        failed,
        msgspec.structs.replace(failed, attempt=stage.cancelled[0]),
    ]


def report(stage: Stage) -> Report:
    """All that a worker can tell at once."""
    running = stage.scene.running
    return stage.bench.report(
        executors=[ExecutorActivity(number=1, pool="main", phase="handle", job_id=running.job_id)],
        marks=[Mark(stage.cancelled[0].job, stage.cancelled[0].claim_token, stage.bench.clock.now_ms())],
        stacks=[StackAnswer(running.attempt_id, "File …")],
    )


def acts(stage: Stage) -> dict[str, Make]:
    """Each act of the store, with arguments that are the same at each sending; some in more ways than one."""
    bench, scene, cancelled, waits = stage
    commands = [bench.command(), bench.command(application="office", kind=Kind("new", 1)), bench.command()]
    plan, batch, told, renewed = bench.plan(), settlements(stage), report(stage), held(scene.running, scene.lapsed)
    cancel = bench.order(ControlAction.CANCEL, waits, scene.targets[scene.running.job_id])
    retry = bench.order(ControlAction.RETRY, scene.targets[scene.failed])
    rerun = bench.order(ControlAction.RERUN, scene.targets[scene.succeeded])
    look = bench.order(ControlAction.LOOK, scene.targets[scene.running.job_id])
    return {
        "dispatch": lambda store: store.dispatch(commands),
        "resolve": lambda store: store.resolve(APPLICATION, scene.dispatched.operation_id),
        "register": lambda store: store.register(APPLICATION, [HIGH, NEW_LANE], frozenset({NEW_KIND})),
        "claim": lambda store: store.claim(plan),
        "begin": lambda store: store.begin(scene.reserved),
        "begin, cancelled": lambda store: store.begin(cancelled[-1]),
        "release": lambda store: store.release([scene.running, scene.reserved, cancelled[0]]),
        "settle": lambda store: store.settle(batch),
        "renew": lambda store: store.renew(told, renewed, LEASE_MS, RECOVERY_MS),
        "recover": lambda store: store.recover(APPLICATION, decided, 100),
        "recover, of a worker": lambda store: store.recover(APPLICATION, decided, 100, worker=bench.worker),
        "expire": lambda store: store.expire(APPLICATION, 100),
        "depart": lambda store: store.depart(bench.presence()),
        "cancel": lambda store: store.control(cancel),
        "retry": lambda store: store.control(retry),
        "rerun": lambda store: store.control(rerun),
        "look": lambda store: store.control(look),
        "events": lambda store: store.events(APPLICATION, None, 100),
        "audit": lambda store: store.audit(APPLICATION, None, 100),
        "workers": lambda store: store.workers(APPLICATION),
        "stack": lambda store: store.stack(APPLICATION, scene.running.attempt_id),
        "job": lambda store: store.job(APPLICATION, scene.running.job_id),
        "outlook": lambda store: store.outlook(APPLICATION, LANES, KINDS),
        "costliest": lambda store: store.costliest(APPLICATION, "cpu_us", 10),
    }
