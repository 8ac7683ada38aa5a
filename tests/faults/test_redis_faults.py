"""What befalls a Redis server: it is restarted, emptied, made a replica, or has no room in memory or on disk.

Nothing that was confirmed is lost, nothing that was refused is there, and whoever is told something is told the truth.
"""

import itertools
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from runwick import (
    DispatchOutcomeUnknown,
    JobNotFound,
    Prepared,
    Receipt,
    RedisOptions,
    Runwick,
    StoreHistoryBroken,
    StoreProfileMismatch,
    StoreUnavailable,
)
from runwick.contracts.controls import ControlAction, ControlCommand, JobTarget, ManagementActor
from runwick.contracts.health import HealthStatus, RoleCheck
from scripts.servers.redis import RedisServer
from tests.kills import jobs
from tests.kills.application import FAST, MARKS
from tests.kills.fire import Field, wait_for
from tests.kills.jobs import Drill
from tests.redis.recount import recounted

APPLICATION: Final = "fire"
RECHECK_S: Final = 5
_BATCH: Final = 20
BACK_WITHIN_S: Final = 10.0
"""The lease that somebody may still hold, the recovery pass, and a busy machine."""
PATIENCE: Final = timedelta(seconds=60)


class Place:
    """A server, supervisors of the application under fire on it, and a producer that keeps book of what it was told."""

    def __init__(self, server: RedisServer, folder: Path) -> None:
        self.server: Final = server
        self.field: Final = Field(folder, server.url())
        self.field.environment["RUNWICK_PROFILE_RECHECK_INTERVAL"] = f"{RECHECK_S}s"
        self.producer: Final = self.another_producer()
        self.producer.migrate()
        self.receipts: list[Receipt] = []
        self.refused: list[Prepared] = []
        self.unknown: list[Prepared] = []
        self._numbers = itertools.count()

    def another_producer(self) -> Runwick:
        """As another process has it."""
        options = RedisOptions(profile_recheck_interval=timedelta(seconds=RECHECK_S))
        producer = Runwick(APPLICATION, store=self.server.url(), worker=FAST, redis=options)
        producer.add_jobs(jobs)
        return producer

    def dispatch(self, milliseconds: float = 1, delay: timedelta | None = None) -> Receipt:
        receipt = self.producer.dispatch(Drill(next(self._numbers), milliseconds), not_before=delay)
        self.receipts.append(receipt)
        return receipt

    def try_dispatch(self) -> None:
        """Dispatch into the trouble, and note what it said."""
        prepared = self.producer.prepare(Drill(next(self._numbers), 1))
        try:
            self.receipts.append(self.producer.dispatch_prepared(prepared))
        except (StoreUnavailable, StoreProfileMismatch):
            self.refused.append(prepared)
        except DispatchOutcomeUnknown:
            self.unknown.append(prepared)

    def fill(self) -> tuple[int, list[Prepared]]:
        """Dispatch batches until some were refused; answers how many were not, and the jobs of the others."""
        confirmed, refused = 0, list[Prepared]()
        while len(refused) < 3 * _BATCH:
            prepared = self.producer.prepare_many([Drill(next(self._numbers), 1) for _ in range(_BATCH)])
            try:
                self.receipts += self.producer.dispatch_prepared(prepared).receipts
                confirmed += 1
            except StoreUnavailable:
                refused += [Prepared(command) for command in prepared.commands]
        return confirmed, refused

    def cancel(self, receipt: Receipt) -> None:
        view, store = self.producer.get(receipt.job_id), self.producer.store
        order = ControlCommand(
            action=ControlAction.CANCEL,
            command_id=self.producer.ids.ordered(),
            application=APPLICATION,
            actor=ManagementActor("ops", "Ops", "service"),
            reason=None,
            targets=[JobTarget(receipt.job, view.generation, view.revision)],
        )
        assert [answer.code for answer in store.run(store.control(order)).answers] == [None]

    def readiness(self) -> RoleCheck:
        (producer,) = self.producer.health().ready
        return producer

    def is_served(self) -> bool:
        before = len(self.receipts)
        self.try_dispatch()
        return len(self.receipts) > before

    def is_marked(self, count: int = 1) -> bool:
        return len(self.field.marks()) >= count

    def check(self, others: int = 0) -> None:
        """All that was confirmed has succeeded, what is unknown is settled by sending it again, and what was refused is
        not there; and the indexes are those of the jobs. `others`: how many jobs there are besides."""
        self.receipts += [self.producer.dispatch_prepared(prepared) for prepared in self.unknown]
        views = [self.producer.wait(receipt, timeout=PATIENCE) for receipt in self.receipts]
        assert {view.state for view in views} == {"succeeded"}
        for prepared in self.refused:
            with pytest.raises(JobNotFound):
                self.producer.get(prepared.job_id)
        assert int(self.server.execute("HGET", f"rw:{{{APPLICATION}}}:meta", "jobs")) == len(views) + others
        assert recounted(self.server, APPLICATION) == []


class Cramped(RedisServer):
    """One whose files may grow to so many blocks of 512 bytes; what is more is refused to it as by a full disk."""

    blocks: int | None = None

    def written(self) -> int:
        """How long its longest file is, in bytes."""
        return max(path.stat().st_size for path in (self.folder / "data").rglob("*.aof"))

    def _command(self) -> list[str]:
        if self.blocks is None:
            return super()._command()
        return ["/bin/sh", "-c", f'ulimit -f {self.blocks}; trap \'\' XFSZ; exec "$0" "$1"', *super()._command()]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Cramped() as server:
        place = Place(server, tmp_path)
        yield place
        place.producer.close()
        for process in place.field.processes():
            process.kill()


def test_f034_due_delayed_and_running_jobs_go_on_as_soon_as_the_server_is_back(place: Place) -> None:
    with place.field.supervisor() as dies:
        place.dispatch(400)
        wait_for(place.is_marked, "a run that nobody will end")
        dies.kill()
        dies.wait()
    with place.field.supervisor():
        place.dispatch(400)
        wait_for(lambda: place.is_marked(MARKS), "a run")
        place.dispatch(delay=timedelta(milliseconds=700))
        for _ in range(20):
            place.dispatch()
        place.server.crash()
        back_s = time.monotonic()
        place.check()
        assert time.monotonic() - back_s < BACK_WITHIN_S


def test_f074_functions_that_are_gone_are_loaded_and_nobody_is_told(place: Place) -> None:
    with place.field.supervisor() as supervisor:
        for _ in range(5):
            place.dispatch()
            place.server.execute("SCRIPT", "FLUSH")
            place.server.execute("FUNCTION", "FLUSH")
            for _ in range(5):
                place.dispatch()
        place.check()
        place.server.execute("FUNCTION", "FLUSH")
        assert supervisor.poll() is None
        supervisor.terminate()
        assert supervisor.wait(60) == 0
    place.server.execute("FUNCTION", "FLUSH")
    wait_for(lambda: place.readiness().status is HealthStatus.HEALTHY, "readiness, which calls a function")
    assert place.server.execute("FUNCTION", "LIST") != []


def test_f076_an_emptied_server_is_told_nothing_is_a_success_and_nobody_makes_a_store(place: Place) -> None:
    with place.field.supervisor() as supervisor:
        place.dispatch(60_000)
        wait_for(place.is_marked, "the run")
        place.server.execute("FLUSHALL")
        assert supervisor.wait(60) != 0, "it stops what it runs, and ends"
        wait_for(lambda: place.field.processes() == [], "its executors to be gone")
    assert "the store is not there any more" in place.field.output.read_text()
    for _ in range(2):
        with pytest.raises(StoreHistoryBroken, match="restart against an intact store"):
            place.dispatch()
    wait_for(lambda: place.readiness().reason == "incompatible", "readiness to say so")
    assert "the store is not there any more" in place.readiness().text
    with place.field.supervisor() as early:
        assert early.wait(60) != 0
    assert place.server.execute("KEYS", "*") == []
    # Somebody makes a new store: who knew the old one must be restarted, and says so.
    fresh = place.another_producer()
    fresh.migrate()
    with pytest.raises(StoreHistoryBroken, match="restart"):
        place.dispatch()
    with place.field.supervisor():
        assert fresh.wait(fresh.dispatch(Drill(0)), timeout=PATIENCE).state == "succeeded"
    fresh.close()


def test_f077_a_server_that_becomes_a_replica_and_a_primary_again_is_written_to_again(place: Place) -> None:
    with place.field.supervisor() as supervisor:
        for _ in range(20):
            place.dispatch(20)
        wait_for(place.is_marked, "a supervisor that has started")
        place.server.execute("REPLICAOF", "127.0.0.1", 1)  # who does not answer, so that its own data stays
        for _ in range(5):
            place.try_dispatch()
        assert (len(place.refused), place.unknown) == (5, [])
        with pytest.raises(StoreUnavailable, match="met a replica"):
            place.dispatch()
        place.server.execute("REPLICAOF", "NO", "ONE")
        back_s = time.monotonic()
        wait_for(place.is_served, "new work to be taken again")
        place.check()
        assert time.monotonic() - back_s < BACK_WITHIN_S
        assert supervisor.poll() is None


def test_f079_without_memory_new_work_is_refused_whole_and_what_runs_is_finished(place: Place) -> None:
    with place.field.supervisor():
        running = [place.dispatch(800) for _ in range(2)]
        wait_for(lambda: len({mark.number for mark in place.field.marks()}) == 2, "two runs")
        waiting = place.dispatch(delay=timedelta(hours=1))
        used = int(place.server.execute("INFO", "memory")["used_memory"])
        place.server.execute("CONFIG", "SET", "maxmemory", used + 300_000)
        whole, refused = place.fill()
        assert whole
        for receipt in running:
            assert place.producer.wait(receipt, timeout=PATIENCE).state == "succeeded"
        place.cancel(waiting)
        place.receipts.remove(waiting)
        _, refused_again = place.fill()
        place.server.execute("CONFIG", "SET", "maxmemory", 0)
        assert recounted(place.server, APPLICATION) == []
        place.refused += refused + refused_again
        place.check(others=1)


def test_f080_a_full_disk_stops_the_server_and_nothing_that_was_confirmed_is_lost(place: Place) -> None:
    assert isinstance(place.server, Cramped)
    with place.field.supervisor() as supervisor:
        place.dispatch()
        wait_for(place.is_marked, "a supervisor that has started")
        for episode in range(1, 4):
            place.server.blocks = place.server.written() // 512 + 200
            place.server.crash()
            while place.server.log().count("Can't recover from AOF write error") < episode:
                place.try_dispatch()
            before = len(place.refused)
            place.try_dispatch()
            assert len(place.refused) == before + 1, "there is nobody to write to"
            place.server.blocks = None
            place.server.start()
        place.check()
        assert supervisor.poll() is None
