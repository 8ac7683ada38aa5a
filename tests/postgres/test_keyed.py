"""Dispatches with the same keys at the same time: who is late waits at the index for who is just writing, and then says
what is true."""

import contextlib
import multiprocessing
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any, Final, TypeVar

import msgspec
import psycopg
import pytest

from runwick.config.options import PostgresOptions
from runwick.contracts.dispatching import COMMAND_LIFETIME_MAX_MS, Command, Receipt, ReceiptDisposition
from runwick.contracts.errors import CommandExpired, ItemFailure, StoreError, StoreUnavailable
from runwick.contracts.identity import id_text, job_of_operation
from runwick.contracts.policies import JobPolicy
from runwick.contracts.revealing import AuditNote
from runwick.contracts.stores import Act
from runwick.policy.limit_ids import active_id, window_id
from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.stores.by_hand import fingerprint, reply_of
from runwick.stores.postgres.address import address_of
from runwick.stores.postgres.store import PostgresStore
from runwick.stores.steps import Steps
from scripts.servers.postgres import PostgresServer
from tests.conformance.ground import ACTOR, APPLICATION, BUILD, MEDIUM, Bench, resource
from tests.conformance.places import Database
from tests.postgres.asking import eventually

T = TypeVar("T")

REQUEST: Final = b"r" * 32
WINDOW_MS: Final = 3_600_000
JOB: Final = b"""
INSERT INTO runwick.job (id, operation_id, created_at_ms, application, lane, kind, policy, payload_bytes, payload)
SELECT %s, %s, 0, application, lane, kind, policy, payload_bytes, payload FROM runwick.job LIMIT 1
"""
ACTIVE: Final = b"""
INSERT INTO runwick.hot (job, due_at_ms, application, lane, kind, payload_bytes, max_executions, active)
SELECT %s, due_at_ms, application, lane, kind, payload_bytes, max_executions, %s FROM runwick.hot LIMIT 1
"""
WINDOW: Final = b"""
INSERT INTO runwick.uniqueness (id, application, job, until_ms, fingerprint)
SELECT %s, application, %s, 9e15::bigint, %s FROM runwick.job LIMIT 1
"""
COMMAND: Final = b"INSERT INTO runwick.command SELECT application, %s, 0, %s, %s FROM runwick.job LIMIT 1"
NOTE: Final = AuditNote(actor=ACTOR, reason=None)
WAITING: Final = b"SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"

SLOW: Final = """
CREATE OR REPLACE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM pg_sleep(0.004); RETURN NEW; END $$;
CREATE TRIGGER slow BEFORE INSERT ON runwick.{table} FOR EACH ROW EXECUTE FUNCTION public.slow();
"""
"""So that rows of several dispatches are surely written at the same time."""
PROCESSES: Final = 3
USES: Final = ("window", "resource", "active")
ROUNDS: Final = 3 * len(USES)
KEYS: Final = 12


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


def with_key(bench: Bench, which: str, key: str = "k") -> Command:
    if which == "active":
        return bench.command(active_key=key)
    return bench.command(window_key=key, window_ms=WINDOW_MS, fingerprint=REQUEST)


def take(connection: "psycopg.Connection[tuple[object, ...]]", bench: Bench, which: str) -> bytes:
    """Create a job that has the key, in a transaction that stays open; answers its id."""
    operation_id = bench.ids.ordered()
    job_id = job_of_operation(operation_id)
    connection.execute(JOB, (id_text(job_id), id_text(operation_id)))
    if which == "active":
        connection.execute(ACTIVE, (id_text(job_id), id_text(active_id(APPLICATION, BUILD.name, "k"))))
    else:
        connection.execute(WINDOW, (id_text(window_id(APPLICATION, BUILD.name, "k")), id_text(job_id), REQUEST))
    return job_id


@pytest.mark.parametrize("ends", ["commit", "rollback"])
@pytest.mark.parametrize("which", ["active", "window"])
def test_f091_the_losers_wait_for_the_winner_and_answer_truthfully(
    database: Database, bench: Bench, which: str, ends: str
) -> None:
    """Also where the winner never comes to be: then one of the losers is the winner."""
    commands = [with_key(bench, which) for _ in range(4)]
    stores = [bench.another() for _ in commands]
    with psycopg.connect(database.url) as winner, ThreadPoolExecutor(len(commands)) as losers:
        first = take(winner, bench, which)
        answers = [
            losers.submit(store.run, store.dispatch([command])) for store, command in zip(stores, commands, strict=True)
        ]
        eventually(lambda: database.execute(WAITING.decode()) == [(len(commands),)], "all of them wait at the key")
        assert not any(answer.done() for answer in answers)
        getattr(winner, ends)()
        receipts = [receipt for answer in answers for receipt in answer.result(30) if isinstance(receipt, Receipt)]
    for store in stores:
        store.close()
    created = [receipt.job for receipt in receipts if receipt.disposition is ReceiptDisposition.CREATED]
    assert len(created) == (0 if ends == "commit" else 1)
    assert {receipt.job for receipt in receipts} == {first if ends == "commit" else created[0]}


def test_who_is_always_too_late_writes_nothing(database: Database, bench: Bench) -> None:
    """A key that is somebody's whenever it writes, and nobody's whenever it reads."""
    command = with_key(bench, "active")
    database.execute(
        "CREATE FUNCTION public.taken() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM nextval('public.tries'); RAISE unique_violation; END $$;"
    )
    database.execute("CREATE SEQUENCE public.tries")
    database.execute("CREATE TRIGGER taken BEFORE INSERT ON runwick.hot FOR EACH ROW EXECUTE FUNCTION public.taken()")
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        bench.send(command)
    assert database.execute("SELECT last_value FROM public.tries") == [(10,)]
    assert database.execute("SELECT count(*) FROM runwick.job") == [(1,)]


@pytest.mark.parametrize("commits", [True, False])
def test_a_late_one_waits_for_an_earlier_sending_that_finds_another_job(
    database: Database, bench: Bench, commits: bool
) -> None:
    found = bench.send(with_key(bench, "active"))[0].job
    command = with_key(bench, "active")
    act = bench.store.dispatch([command])
    with psycopg.connect(database.url) as earlier, ThreadPoolExecutor(1) as late:
        earlier.execute(
            b"INSERT INTO runwick.reused (operation, application, job, deadline_ms, match, drift) "
            b"SELECT %s, application, id, %s, 'active', false FROM runwick.job WHERE id = %s",
            (id_text(command.operation_id), command.deadline_ms, id_text(found)),
        )
        bench.clock.advance_ms(COMMAND_LIFETIME_MAX_MS + 1)
        answer = late.submit(bench.store.run, act)
        eventually(lambda: database.execute(WAITING.decode()) == [(1,)], "it waits")
        earlier.commit() if commits else earlier.rollback()
        if commits:
            assert [receipt.job for receipt in answer.result(30) if isinstance(receipt, Receipt)] == [found]
        else:
            with pytest.raises(CommandExpired):
                answer.result(30)
    assert (bench.run(bench.store.resolve(APPLICATION, command.operation_id)) is not None) == commits
    assert database.execute("SELECT count(*) FROM runwick.job") == [(2,)]


def test_f088_batches_with_the_same_keys_in_any_order_never_wait_in_a_circle(database: Database, bench: Bench) -> None:
    """Three processes at once, each round with new keys or new resources, each process in an order of its own."""
    for table in ("uniqueness", "scope", "hot"):
        database.execute(SLOW.format(table=table))
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    told: Any = context.Queue()
    deadline_ms = bench.clock.now_ms() + COMMAND_LIFETIME_MAX_MS
    processes = [
        context.Process(target=_dispatcher, args=(database.url, number, barrier, deadline_ms, told))
        for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    answers = [answer for _ in processes for answer in told.get(timeout=120)]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    for turn in range(ROUNDS):
        by_key: dict[str, set[bytes]] = {}
        for key, job_id in (answer[1:] for answer in answers if answer[0] == turn):
            by_key.setdefault(key, set()).add(job_id)
        assert len(by_key) == KEYS
        assert {len(jobs) for jobs in by_key.values()} == {PROCESSES if USES[turn % len(USES)] == "resource" else 1}
    assert len(bench.scopes()) == KEYS * sum(USES[turn % len(USES)] == "resource" for turn in range(ROUNDS))
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert database.execute(deadlocks) == [(0,)]


def _dispatcher(url: str, number: int, barrier: Barrier, deadline_ms: int, told: Any) -> None:
    store = PostgresStore(
        address_of(url), options=PostgresOptions(), concurrent_calls=1, clock=SystemClock(), ids=SystemIds()
    )
    ids, draw = SystemIds(), random.Random(number)
    answers = []
    for turn in range(ROUNDS):
        keys = [f"{turn}:{key}" for key in range(KEYS)]
        draw.shuffle(keys)
        commands = [_command(ids.ordered(), USES[turn % len(USES)], key, deadline_ms) for key in keys]
        barrier.wait(60)
        receipts = [receipt for receipt in store.run(store.dispatch(commands)) if isinstance(receipt, Receipt)]
        answers += [(turn, key, receipt.job) for key, receipt in zip(keys, receipts, strict=True)]
    store.close()
    told.put(answers)


def _command(operation_id: bytes, use: str, key: str, deadline_ms: int) -> Command:
    uses: dict[str, dict[str, Any]] = {
        "window": {"window_key": key, "window_ms": WINDOW_MS, "fingerprint": REQUEST},
        "resource": {"scopes": (resource(key),)},
        "active": {"active_key": key},
    }
    return Command(
        operation_id=operation_id,
        job_id=job_of_operation(operation_id),
        application=APPLICATION,
        kind=BUILD,
        lane=MEDIUM,
        policy=JobPolicy(),
        payload=b"{}",
        deadline_ms=deadline_ms,
        **uses[use],
    )


@pytest.mark.parametrize("ends", ["commit", "rollback"])
@pytest.mark.parametrize("winner_does", ["the same", "something else"])
def test_a_dispatch_by_hand_waits_for_who_uses_its_id(
    database: Database, bench: Bench, winner_does: str, ends: str
) -> None:
    command, (other,) = bench.command(), bench.send(bench.command())
    receipt = msgspec.structs.replace(other, job=command.job_id, operation=command.operation_id)
    kept = fingerprint(command, NOTE) if winner_does == "the same" else b"another"
    with psycopg.connect(database.url) as winner, ThreadPoolExecutor(1) as loser:
        if winner_does == "the same":
            winner.execute(JOB, (id_text(command.job_id), id_text(command.operation_id)))
        winner.execute(COMMAND, (id_text(command.operation_id), kept, reply_of(receipt).decode()))
        answer = loser.submit(bench.run, bench.store.dispatch([command], note=NOTE))
        eventually(lambda: database.execute(WAITING.decode()) == [(1,)], "it waits for the command")
        getattr(winner, ends)()
        if (winner_does, ends) == ("something else", "commit"):
            with pytest.raises(StoreError, match="was used for something else"):
                answer.result(30)
            assert bench.run(bench.store.resolve(APPLICATION, command.operation_id)) is None
        else:
            assert answer.result(30) == [receipt]
    assert len(bench.audit()) == (1 if ends == "rollback" else 0)


def before_keyed(act: Act[T], come: Callable[[], object]) -> Act[T]:
    """The same act, where somebody comes between its first steps and what it reads of keys."""

    def steps() -> Steps[T]:
        own, has_come = act.steps(), False
        try:
            step = next(own)
            while True:
                if step.statement == "keyed" and not has_come:
                    has_come = True
                    come()
                step = own.send((yield step))
        except StopIteration as end:
            answer: T = end.value
            return answer

    return Act(act.name, steps)


@pytest.mark.parametrize("note", [NOTE, None])
def test_a_dispatch_by_hand_sees_who_came_since_it_asked(bench: Bench, note: AuditNote | None) -> None:
    command = bench.command()
    receipts: list[Receipt | ItemFailure] = []
    with contextlib.closing(bench.another()) as other:

        def come() -> None:
            answers = other.run(other.dispatch([command], note=note))
            receipts.extend(answers)

        act = before_keyed(bench.store.dispatch([command], note=NOTE), come)
        if note is None:
            with pytest.raises(StoreError, match="was used for something else"):
                bench.run(act)
        else:
            assert bench.run(act) == receipts
    assert len(receipts) == 1
    assert len(bench.audit()) == (0 if note is None else 1)
