"""A server is killed, and its sessions ended, under load: nothing confirmed is lost, and every loop comes back."""

import itertools
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from runwick import DispatchOutcomeUnknown, Prepared, Receipt, Runwick, StoreUnavailable
from scripts.servers.postgres import PostgresServer
from scripts.servers.redis import RedisServer
from tests.kills import jobs
from tests.kills.application import FAST
from tests.kills.fire import Field, completed, overlaps, wait_for
from tests.kills.jobs import Drill

KILLS: Final = {"postgres": 20, "redis": 50}
ENDS: Final = 20
BATCH: Final = 60
BACK_WITHIN_S: Final = 10.0
ASK: Final = timedelta(seconds=BACK_WITHIN_S)


class Siege(ABC):
    """A server, one supervisor's field on it, and a producer that keeps book of what it was told."""

    server: PostgresServer | RedisServer

    def __init__(self, field: Field, producer: Runwick) -> None:
        self.field = field
        self.producer = producer
        self.receipts: list[Receipt] = []
        self.unknown: list[Prepared] = []
        self.refused: list[str] = []
        """Jobs of which it was said that nothing was written."""
        self._numbers = itertools.count()

    def dispatch_batch(self) -> None:
        batch = self.producer.dispatch_many([Drill(next(self._numbers)) for _ in range(BATCH)])
        self.receipts += batch.receipts

    def dispatch_one(self) -> Receipt:
        receipt = self.producer.dispatch(Drill(next(self._numbers)))
        self.receipts.append(receipt)
        return receipt

    def try_dispatch(self) -> None:
        """Dispatch into the trouble, and note what it said."""
        prepared = self.producer.prepare(Drill(next(self._numbers)))
        try:
            self.receipts.append(self.producer.dispatch_prepared(prepared))
        except StoreUnavailable:
            self.refused.append(prepared.job_id)
        except DispatchOutcomeUnknown:
            self.unknown.append(prepared)

    def loaded(self, what: str) -> None:
        seen = len(self.field.marks())
        wait_for(lambda: len(self.field.marks()) > seen + 8, what)

    def await_loops(self) -> float:
        """Wait until each loop has shown a sign of life since now; answers the seconds it took."""
        since_s, since_ms = time.monotonic(), self.now_ms()
        receipt = self.dispatch_one()
        assert self.producer.wait(receipt, timeout=ASK).state == "succeeded", "claimer, executors or finalizer"
        wait_for(lambda: self.seen_ms() > since_ms, "the heartbeat")
        wait_for(lambda: self.recovery_ms() - 200 > since_ms, "the recovery")
        wait_for(self.listens, "the listener")
        return time.monotonic() - since_s

    @abstractmethod
    def now_ms(self) -> int:
        """The server's time."""

    @abstractmethod
    def seen_ms(self) -> int:
        """When a worker was seen last."""

    @abstractmethod
    def recovery_ms(self) -> int:
        """When the next recovery is due."""

    @abstractmethod
    def listens(self) -> bool:
        """Whether somebody hears what the store tells."""

    @abstractmethod
    def end_a_session(self, dice: random.Random) -> None:
        """End one of the application's connections."""

    @abstractmethod
    def jobs(self) -> int:
        """How many jobs are in the store."""

    def check(self) -> None:
        """What must hold when everything has come to rest."""
        for prepared in self.unknown:
            self.receipts.append(self.producer.dispatch_prepared(prepared))
        views = [self.producer.wait(receipt, timeout=timedelta(seconds=60)) for receipt in self.receipts]
        marks = self.field.marks()
        assert [view for view in views if view.state != "succeeded"] == []
        assert len({view.job_id for view in views}) == len(views)
        assert overlaps(marks) == []
        assert len(completed(marks)) == len(views), "a job ran of which nobody was told, or one that was told did not"
        assert self.jobs() == len(views), "what was refused must not be there"
        for view in views:
            numbers = [attempt.number for attempt in view.attempts]
            assert numbers == list(range(1, len(numbers) + 1))
            assert [attempt.outcome for attempt in view.attempts].count("succeeded") == 1


class PostgresSiege(Siege):
    def __init__(self, server: PostgresServer, field: Field, producer: Runwick) -> None:
        super().__init__(field, producer)
        self.server: PostgresServer = server

    def now_ms(self) -> int:
        return self._number("SELECT runwick.now_ms()")

    def seen_ms(self) -> int:
        return self._number("SELECT max(seen_at_ms) FROM runwick.worker")

    def recovery_ms(self) -> int:
        return self._number("SELECT max(next_at_ms) FROM runwick.recovery")

    def listens(self) -> bool:
        return bool(
            self._ask("SELECT 1 FROM pg_stat_activity WHERE application_name = 'runwick listening' AND state = 'idle'")
        )

    def end_a_session(self, dice: random.Random) -> None:
        sessions = self._ask(
            "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'runwick%' AND pid <> pg_backend_pid()"
        )
        if sessions:
            self._ask(f"SELECT pg_terminate_backend({dice.choice(sessions)[0]})")

    def jobs(self) -> int:
        return self._number("SELECT count(*) FROM runwick.job")

    def _number(self, query: str) -> int:
        return self._ask(query)[0][0]

    def _ask(self, query: str) -> list[tuple[int, ...]]:
        return self.server.execute(query, database="fire")


class RedisSiege(Siege):
    def __init__(self, server: RedisServer, field: Field, producer: Runwick) -> None:
        super().__init__(field, producer)
        self.server: RedisServer = server

    def now_ms(self) -> int:
        seconds, microseconds = self.server.execute("TIME")
        return int(seconds) * 1_000 + int(microseconds) // 1_000

    def seen_ms(self) -> int:
        store = self.producer.store
        return max(worker.seen_at_ms for worker in store.run(store.workers("fire")))

    def recovery_ms(self) -> int:
        return int(self.server.execute("HGET", "rw:{fire}:meta", "recovery"))

    def listens(self) -> bool:
        return "runwick-listening" in self._clients().values()

    def end_a_session(self, dice: random.Random) -> None:
        if sessions := list(self._clients()):
            self.server.execute("CLIENT", "KILL", "ID", dice.choice(sessions))

    def jobs(self) -> int:
        return int(self.server.execute("HGET", "rw:{fire}:meta", "jobs"))

    def _clients(self) -> dict[str, str]:
        """The names of the application's connections by their ids."""
        with self.server.client() as client:
            clients = client.client_list()
        return {each["id"]: each["name"] for each in clients if each["name"].startswith("runwick")}


@pytest.fixture(params=["postgres", "redis"])
def siege(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Siege]:
    with PostgresServer() if request.param == "postgres" else RedisServer() as server:
        field = Field(tmp_path, server.create_database("fire") if isinstance(server, PostgresServer) else server.url())
        monkeypatch.setenv("RUNWICK_STORE", field.environment["RUNWICK_STORE"])
        producer = Runwick("fire", worker=FAST)
        producer.add_jobs(jobs)
        producer.migrate()
        if isinstance(server, PostgresServer):
            yield PostgresSiege(server, field, producer)
        else:
            yield RedisSiege(server, field, producer)
        producer.close()
        for process in field.processes():
            process.kill()


@pytest.mark.timeout(300)
def test_f065_f068_a_server_that_is_killed_loses_nothing_and_is_found_again(siege: Siege) -> None:
    with siege.field.supervisor() as supervisor:
        siege.dispatch_batch()
        kills = KILLS["postgres" if isinstance(siege, PostgresSiege) else "redis"]
        for count in range(kills):
            siege.dispatch_batch()
            siege.loaded(f"load before kill {count + 1}")
            siege.server.kill()
            siege.try_dispatch()
            siege.server.start()
            assert siege.await_loops() < BACK_WITHIN_S
        siege.check()
        assert supervisor.poll() is None
        supervisor.terminate()
        assert supervisor.wait(60) == 0
    assert len(siege.refused) + len(siege.unknown) == kills


@pytest.mark.timeout(180)
def test_sessions_that_are_ended_at_random_lose_nothing(siege: Siege) -> None:
    dice = random.Random(10)
    with siege.field.supervisor() as supervisor:
        siege.dispatch_batch()
        for count in range(ENDS):
            siege.loaded(f"load before end {count + 1}")
            siege.end_a_session(dice)
            siege.try_dispatch()
            if count % 2:
                siege.dispatch_batch()
        assert siege.await_loops() < BACK_WITHIN_S
        siege.check()
        assert supervisor.poll() is None
        supervisor.terminate()
        assert supervisor.wait(60) == 0


PATIENT: Final = {
    "RUNWICK_LEASE_DURATION": "60s",
    "RUNWICK_LEASE_SAFETY_MARGIN": "10s",
    "RUNWICK_RENEWAL_INTERVAL": "500ms",
    "RUNWICK_MINIMUM_INVOCATION_MARGIN": "1s",
}
"""Leases that outlast a server's restart."""


def test_f044_a_lease_survives_the_restart_of_the_server(siege: Siege) -> None:
    siege.field.environment |= PATIENT
    with siege.field.supervisor() as supervisor:
        receipt = siege.producer.dispatch(Drill(0, milliseconds=3_000))
        wait_for(lambda: len(siege.field.marks()) > 0, "the run")
        siege.server.kill()
        siege.server.start()
        view = siege.producer.wait(receipt, timeout=timedelta(seconds=60))
        assert [attempt.outcome for attempt in view.attempts] == ["succeeded"]
        assert len({mark.attempt_id for mark in siege.field.marks()}) == 1
        supervisor.terminate()
        assert supervisor.wait(60) == 0
