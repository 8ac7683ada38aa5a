"""What operators change while others are at it, and how claims get to know."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from runwick.contracts.controls import SteerAction, SteerReply
from runwick.contracts.limits import LimitKind
from runwick.contracts.stores import Act
from runwick.policy.limit_ids import scope_id
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import MakesDue
from runwick.stores.postgres.intake import IntakeCache, Standing
from runwick.stores.postgres.revision import REVISION
from runwick.stores.postgres.store import PostgresStore
from runwick.stores.steps import Steps
from scripts.servers.postgres import PostgresServer
from tests.conformance.ground import APPLICATION, BUILD, HIGH, KINDS, LOW, Bench, capped, capped_type, resource
from tests.conformance.places import Database
from tests.postgres.asking import eventually

OPERATORS = 6


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    database = Database(postgres)
    yield database
    database.close()


@pytest.fixture
def bench(database: Database) -> Iterator[Bench]:
    bench = database.bench()
    bench.dispatch()
    yield bench
    bench.store.close()


def revision(database: Database) -> object:
    ((number,),) = database.execute("SELECT revision FROM runwick.intake")
    return number


class Reader:
    """Reads what keeps an application's jobs from the narrow way, and counts how often it asks."""

    def __init__(self, database: Database, store: PostgresStore) -> None:
        ((application,),) = database.execute("SELECT id FROM runwick.application")
        assert isinstance(application, int)
        self._application = application
        self._store = store
        assert store.store_id is not None
        gate = packed.Id(store.store_id), packed.number(REVISION), packed.flag(True)
        self.cache = IntakeCache(lambda: gate)
        self.reads = 0

    def standing(self) -> Standing:
        return self._store.run(Act("intake", self._steps, reads_only=True))

    def forget(self) -> None:
        self.cache.forget(self._application)

    def _steps(self) -> Steps[Standing]:
        steps = self.cache.of(self._application)
        try:
            step = next(steps)
            self.reads += 1
            while True:
                step = steps.send((yield step))
        except StopIteration as end:
            standing: Standing = end.value
            return standing


def test_what_keeps_jobs_from_the_narrow_way_is_read_once_and_anew_when_it_is_forgotten(
    database: Database, bench: Bench
) -> None:
    assert isinstance(bench.store, PostgresStore)
    reader = Reader(database, bench.store)
    assert reader.standing() == Standing(0, frozenset(), {}, {})
    bench.pause()
    bench.run(bench.store.register(APPLICATION, [HIGH], KINDS, [capped("reports", 3), capped_type(BUILD.name, 2)]))
    assert reader.standing().revision == 0
    assert reader.reads == 1
    reader.forget()
    assert reader.standing() == Standing(
        2,
        frozenset({"reports"}),
        {"reports": scope_id(APPLICATION, LimitKind.QUEUE, "reports")},
        {BUILD.name: scope_id(APPLICATION, LimitKind.JOB_TYPE, BUILD.name)},
    )
    bench.resume()
    reader.cache.clear()
    assert reader.standing().paused == frozenset()


def test_the_number_rises_with_all_that_claims_must_know_and_with_nothing_else(
    database: Database, bench: Bench
) -> None:
    assert revision(database) == 0
    bench.pause()
    assert revision(database) == 1
    bench.resume(expected_revision=0)
    bench.pause()
    assert revision(database) == 1, "what is refused changes nothing"
    bench.resume()
    assert revision(database) == 2
    bench.dispatch(scopes=(capped("reports", 2), resource("printer")))
    assert revision(database) == 3
    bench.dispatch(scopes=(capped("reports", 2), resource("scanner")))
    bench.dispatch(scopes=(capped("reports", 9),))
    bench.run(bench.store.register(APPLICATION, [LOW], KINDS, [capped("reports", 9)]))
    bench.limit("reports", 4, LimitKind.QUEUE)
    bench.limit("printer", 4)
    assert revision(database) == 3, "a capacity is read with its row"
    bench.dispatch(scopes=(capped_type(BUILD.name, 2),))
    assert revision(database) == 4
    bench.run(bench.store.register(APPLICATION, [LOW], KINDS, [capped("reports", 9), capped("mails", 1)]))
    assert revision(database) == 5


@pytest.mark.parametrize("what", ["pause", "capacity"])
def test_of_operators_who_saw_the_same_one_is_heard(database: Database, bench: Bench, what: str) -> None:
    bench.dispatch(scopes=(resource("printer"),))
    if what == "pause":
        commands = [bench.steering(SteerAction.PAUSE, LimitKind.QUEUE, "reports") for _ in range(OPERATORS)]
    else:
        commands = [
            bench.steering(SteerAction.SET_CAPACITY, LimitKind.RESOURCE, "printer", capacity=number + 2)
            for number in range(OPERATORS)
        ]
    stores = [bench.another() for _ in commands]
    table = "pause" if what == "pause" else "scope"
    with psycopg.connect(database.url) as barrier, ThreadPoolExecutor(OPERATORS) as operators:
        barrier.execute(f"LOCK TABLE runwick.{table} IN SHARE MODE".encode())
        replies = [
            operators.submit(store.run, store.steer(command)) for store, command in zip(stores, commands, strict=True)
        ]
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'"
        eventually(lambda: database.execute(waiting) == [(OPERATORS,)], "all of them are at it")
        barrier.commit()
        answers = [reply.result(30) for reply in replies]
    for store in stores:
        store.close()
    (done,) = (answer for answer in answers if answer.code is None)
    refused = SteerReply("stale_revision", done.revision, done.after)
    assert [answer for answer in answers if answer.code is not None] == [refused] * (OPERATORS - 1)
    assert len(bench.audit()) == 1


def test_a_command_that_is_sent_twice_at_once_is_applied_once(database: Database, bench: Bench) -> None:
    command = bench.steering(SteerAction.PAUSE, LimitKind.QUEUE, "reports")
    other = bench.another()
    with psycopg.connect(database.url) as barrier, ThreadPoolExecutor(2) as senders:
        barrier.execute(b"LOCK TABLE runwick.pause IN SHARE MODE")
        replies = [senders.submit(store.run, store.steer(command)) for store in (bench.store, other)]
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'"
        eventually(lambda: database.execute(waiting) == [(2,)], "both are at it")
        barrier.commit()
        answers = [reply.result(30) for reply in replies]
    other.close()
    assert sorted(answer.replayed for answer in answers) == [False, True]
    assert {(answer.code, answer.revision, answer.after) for answer in answers} == {(None, 1, "paused")}
    assert len(bench.audit()) == 1


def test_who_makes_room_wakes_those_who_wait_for_it(bench: Bench) -> None:
    """And nobody else does."""
    bench.dispatch(scopes=(resource("printer"),), count=2)
    bench.claim()

    def wakes(action: SteerAction, kind: LimitKind, key: str, **changes: Any) -> bool:
        act = bench.store.steer(bench.steering(action, kind, key, **changes))
        assert isinstance(act, MakesDue)
        assert bench.run(act).code is None
        return bool(act.due)

    assert not wakes(SteerAction.PAUSE, LimitKind.QUEUE, "reports")
    assert wakes(SteerAction.RESUME, LimitKind.QUEUE, "reports")
    assert wakes(SteerAction.SET_CAPACITY, LimitKind.RESOURCE, "printer", capacity=2)
    assert not wakes(SteerAction.SET_CAPACITY, LimitKind.RESOURCE, "printer", capacity=9)
