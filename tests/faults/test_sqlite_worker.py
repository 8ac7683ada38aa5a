"""A worker on a file that comes and goes: every loop goes on by itself, and nothing is lost."""

import asyncio
import datetime
import itertools
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from runwick import Job, JobState, Runwick, WorkerOptions
from runwick.app.worker import EmbeddedWorker
from runwick.config.options import SqliteOptions
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from tests.faults.failing_sqlite import FAULTS, Saboteur
from tests.sqlite.processes import DEADLINE_S, Child, Peer

ms = datetime.timedelta(milliseconds=1)
QUICK = WorkerOptions(safety_poll_interval=50 * ms, recovery_scan_interval=200 * ms, recovery_scan_jitter=50 * ms)


class Letter(Job):
    waits: bool = False


class Office:
    """An application with one kind of job, which waits for the test where that is asked for."""

    def __init__(self, path: Path) -> None:
        self.rw = Runwick(
            "office", store=f"sqlite:///{path}", worker=QUICK, sqlite=SqliteOptions(writer_busy_timeout=100 * ms)
        )
        self.rw.job("office.letter", retry_delay=(ms, ms))(Letter)
        self.at_it, self.go_on = threading.Event(), threading.Event()

        @self.rw.handler
        def letter(job: Letter) -> None:
            if job.waits:
                self.at_it.set()
                assert self.go_on.wait(DEADLINE_S)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office(tmp_path / "jobs.db")
    office.rw.migrate()
    yield office
    office.rw.close()


def locks_and_frees(path: Path) -> Callable[[Peer], None]:
    """A process that takes SQLite's write lock, and gives it back, when it is told to."""

    def work(peer: Peer) -> None:
        connection = sqlite3.connect(path, isolation_level=None, timeout=DEADLINE_S)
        while peer.hear():
            connection.execute("BEGIN IMMEDIATE")
            peer.say("locked")
            peer.hear()
            connection.execute("ROLLBACK")
            peer.say("free")
        connection.close()

    return work


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not is_so():
            await asyncio.sleep(0.005)


def last_seen_ms(path: Path) -> int:
    connection = sqlite3.connect(path)
    (seen_ms,) = connection.execute("SELECT max(seen_at_ms) FROM runwick_worker").fetchone()
    connection.close()
    return int(seen_ms)


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_f065_a_worker_goes_on_after_its_file_was_locked_again_and_again(
    office: Office, tmp_path: Path, busy: bool
) -> None:
    failed: list[str] = []
    answered: list[str] = []

    def listen(bus: Bus) -> None:
        bus.listen(events.StoreCallFailed, lambda event: failed.append(event.act))
        bus.listen(events.StoreCallAnswered, lambda event: answered.append(event.act))

    async def scenario(locker: Child) -> None:
        async with EmbeddedWorker(office.rw, listen=listen) as worker:
            if busy:
                await office.rw.dispatch_async(Letter(waits=True))
                await until(office.at_it.is_set)
            for number in range(1, 6):
                locker.say("lock")
                locker.hear()
                await until(lambda number=number: len(failed) >= number)  # type: ignore[misc]
                locker.say("free")
                locker.hear()
                await until(lambda: len(answered) >= len(failed))
            seen_ms = office.rw.clock.now_ms()
            receipt = await office.rw.dispatch_async(Letter())
            office.go_on.set()
            job = await office.rw.wait_async(receipt, timeout=datetime.timedelta(seconds=10))
            assert job.state is JobState.SUCCEEDED
            await until(lambda: last_seen_ms(tmp_path / "jobs.db") > seen_ms)
            await until(lambda: worker.tally.succeeded == 1 + busy)

    with Child(locks_and_frees(tmp_path / "jobs.db")) as locker:
        in_a_loop(lambda: scenario(locker))
        locker.say(None)


def test_f071_a_worker_outlives_every_kind_of_error_at_any_of_its_statements(
    saboteur: Saboteur, office: Office
) -> None:
    """Thirteen statements apart, so that over the kinds of errors the errors meet statements of every act."""
    receipts = [office.rw.dispatch(Letter()) for _ in range(30)]
    kinds = itertools.cycle(FAULTS)
    failures = 0

    def fail_again() -> None:
        nonlocal failures
        failures += 1
        if failures <= 2 * len(FAULTS):
            saboteur.arm(next(kinds), 13)
        else:
            saboteur.disarm()

    async def scenario() -> None:
        async with EmbeddedWorker(office.rw, listen=lambda bus: None) as worker:
            saboteur.failed = fail_again
            fail_again()
            await until(lambda: failures > 2 * len(FAULTS))
            ends = [await office.rw.wait_async(receipt, timeout=datetime.timedelta(seconds=10)) for receipt in receipts]
            assert {job.state for job in ends} == {JobState.SUCCEEDED}
            assert worker.failure is None

    in_a_loop(scenario)


def in_a_loop(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 2 * DEADLINE_S))
