"""A worker's leases on rows that somebody's transaction holds, while its heartbeat goes on."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from runwick.config.options import WorkerOptions
from runwick.contracts.errors import StoreHistoryBroken
from runwick.contracts.identity import id_text
from runwick.telemetry.bus import Bus
from runwick.worker.parts import Parts
from runwick.worker.pools import ServedPool
from runwick.worker.timings import timings_of
from scripts.servers.postgres import PostgresServer
from tests.ambient import FakeDice
from tests.conformance.ground import KINDS, LEASE_MS, MEDIUM, Bench
from tests.conformance.places import Database
from tests.worker.backend import HandBackend
from tests.worker.ground import hear


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    with closing(Database(postgres)) as database:
        yield database


@pytest.fixture
def bench(database: Database) -> Iterator[Bench]:
    bench = database.bench()
    yield bench
    bench.store.close()


class Worker:
    """The parts of one worker on a real store, whose time the test moves."""

    def __init__(self, bench: Bench) -> None:
        self.backend = HandBackend(2, 0)
        self.bus = Bus()
        self.said = hear(self.bus)
        self.parts = Parts(
            bench.store,
            [ServedPool("pool", self.backend, {MEDIUM.queue: 1}, 2)],
            bench.presence(),
            KINDS,
            timings_of(WorkerOptions()),
            clock=bench.clock,
            dice=FakeDice(),
            ids=bench.ids,
            bus=self.bus,
            changed=lambda: None,
            fail=_fail,
            cut=_cut,
        )
        (self.backend.sink,) = self.parts.stations.sinks
        self.backend.started = True
        self._clock = bench.clock

    def claims(self) -> None:
        asyncio.run(self.parts.stations.claimers[0].run_once())

    def beats_for(self, milliseconds: int) -> None:
        """Its heartbeat and its watchdog run as they ask to."""
        end_ms = self._clock.now_ms() + milliseconds
        while (left_ms := end_ms - self._clock.now_ms()) > 0:
            pause_s = asyncio.run(self.parts.heartbeat.run_once())
            asyncio.run(self.parts.watchdog.run_once())
            assert pause_s is not None
            self._clock.advance_ms(min(left_ms, max(1, round(pause_s * 1000))))


def test_a_lease_whose_renewals_met_a_held_row_is_renewed_as_soon_as_the_row_is_free(
    bench: Bench, database: Database
) -> None:
    """It is free behind the last renewal that would come in time, and shortly before the worker takes it for lost."""
    worker = Worker(bench)
    held, other = bench.dispatch(2)
    worker.claims()
    assert [attempt.job_id for attempt in worker.backend.held] == [held, other]
    with psycopg.connect(database.url) as somebody:
        somebody.execute("SELECT FROM runwick.hot WHERE job = %s::uuid FOR UPDATE", (id_text(held),))
        worker.beats_for(LEASE_MS - 13_000)
    worker.beats_for(LEASE_MS)
    assert worker.said == []
    assert bench.recover() == []
    assert {str(bench.job(job).state) for job in (held, other)} == {"running"}


def _fail(reason: str) -> None:
    raise AssertionError(reason)


def _cut(error: StoreHistoryBroken) -> None:
    raise error
