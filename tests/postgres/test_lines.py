"""Lines of limits beside transactions of others: whoever parks and whoever frees meet at the limit's row."""

import functools
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from runwick.contracts.controls import ControlAction, SteerAction
from runwick.contracts.identity import id_text
from runwick.contracts.limits import LimitKind
from runwick.contracts.outcomes import Settlement
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act, Store
from scripts.servers.postgres import PostgresServer
from tests.conformance.ground import APPLICATION, LEASE_MS, SEND, SUCCESS, Bench, ids_of, resource
from tests.conformance.places import Database
from tests.postgres.asking import PATIENCE_S, eventually, execute

PRINTER = resource("printer")
SCOPES = [resource(f"account-{number}", 2) for number in range(8)]


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    database = Database(postgres)
    yield database
    database.close()


@pytest.fixture
def bench(database: Database) -> Iterator[Bench]:
    bench = database.bench()
    yield bench
    bench.store.close()


def settling(bench: Bench, *attempts: Any) -> Act[Any]:
    return bench.store.settle([Settlement(attempt, SUCCESS, JobState.SUCCEEDED) for attempt in attempts])


def _wait_for_rows(database: Database, count: int) -> bool:
    """Whether so many statements of stores wait for another transaction just now."""
    rows = database.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
        "AND starts_with(application_name, 'runwick')"
    )
    return rows == [(count,)]


@pytest.mark.parametrize("frees_first", [True, False])
def test_f097_whether_it_is_freed_or_parked_first_nobody_stands_in_the_line_of_a_free_scope(
    bench: Bench, database: Database, frees_first: bool
) -> None:
    (holder, waiter) = bench.dispatch(2, scopes=(PRINTER,))
    (attempt,) = bench.claim(free=1).attempts
    assert attempt.job_id == holder
    other = bench.another()
    acts: list[tuple[Store, Act[Any]]] = [(bench.store, settling(bench, attempt)), (other, other.claim(bench.plan()))]
    answers: dict[str, Any] = {}
    threads = []
    with psycopg.connect(database.url) as somebody:
        somebody.execute("SELECT FROM runwick.scope FOR UPDATE")
        for place, (store, act) in enumerate(acts if frees_first else acts[::-1]):
            threads.append(threading.Thread(target=_answering(answers, store, act)))
            threads[-1].start()
            eventually(functools.partial(_wait_for_rows, database, place + 1), "both wait for the scope")
    for thread in threads:
        thread.join()
    claim = answers["claim"]
    assert (ids_of(claim.attempts), claim.parked) == (([waiter], 0) if frees_first else ([], 1))
    if not frees_first:
        assert database.execute("SELECT line IS NULL, called IS NOT NULL FROM runwick.hot") == [(True, True)]
        assert ids_of(other.run(other.claim(bench.plan())).attempts) == [waiter]
    other.close()


def _answering(answers: dict[str, Any], store: Store, act: Act[Any]) -> Callable[[], None]:
    def answer() -> None:
        answers[act.name] = store.run(act)

    return answer


def test_f095_a_late_settlement_of_a_lost_attempt_frees_nothing(bench: Bench, database: Database) -> None:
    lost = bench.claimed(scopes=(PRINTER,))
    bench.clock.advance_ms(LEASE_MS)
    assert ids_of(bench.recover(delay_ms=0)) == [lost.job_id]
    (kept,) = bench.claim().attempts
    (waiter,) = bench.dispatch(scopes=(PRINTER,))
    assert bench.claim().parked == 1
    assert bench.succeed(lost) == "not_yours"
    assert bench.release(lost) == ["not_yours"]
    assert bench.scope("printer").in_use == 1
    assert database.execute("SELECT claim::text FROM runwick.hold") == [(id_text(kept.claim_token),)]
    assert [fence.value for fence in (*lost.fences, *kept.fences)] == [1, 2]
    assert bench.succeed(kept) == "done"
    assert ids_of(bench.claim().attempts) == [waiter]


def test_a_called_job_whose_row_somebody_holds_is_passed_over_and_keeps_its_place(
    bench: Bench, database: Database
) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    first, second = bench.dispatch(2, scopes=(PRINTER,))
    assert bench.claim().parked == 2
    with psycopg.connect(database.url) as somebody:
        somebody.execute("SELECT FROM runwick.hot WHERE job = %s::uuid FOR UPDATE", (id_text(first),))
        bench.succeed(holder)
        (attempt,) = bench.claim().attempts
        assert attempt.job_id == second
    bench.succeed(attempt)
    assert ids_of(bench.claim().attempts) == [first]
    assert not bench.scope("printer").waiting


def test_f088_claimers_and_settlers_over_shared_scopes_meet_no_deadlock(bench: Bench, database: Database) -> None:
    """Each job needs several of the scopes, declared in an order of its own."""
    dice = random.Random(8)
    for _ in range(2):
        bench.send(*(bench.command(scopes=tuple(dice.sample(SCOPES, 3))) for _ in range(60)))
    claimed: list[Any] = []
    ended: list[bytes] = []
    errors: list[BaseException] = []
    lock = threading.Lock()
    plans, room = threading.Semaphore(0), threading.Semaphore(0)

    def working(work: Callable[[Store], None]) -> Callable[[], None]:
        def run() -> None:
            store = bench.another()
            try:
                while len(ended) < 120 and not errors:
                    work(store)
            except BaseException as error:
                errors.append(error)
            finally:
                store.close()

        return run

    def claim(store: Store) -> None:
        attempts = store.run(store.claim(bench.plan(free=6))).attempts
        with lock:
            claimed.extend(attempts)
        plans.release()
        if not attempts:
            room.acquire(timeout=0.05)

    def settle(store: Store) -> None:
        plans.acquire(timeout=0.05)
        with lock:
            random.shuffle(claimed)
            batch, claimed[:] = claimed[:5], claimed[5:]
        if batch:
            answers = store.run(settling(bench, *batch))
            room.release()
            with lock:  # a claim that saw the row as it stood before may hold it for a moment
                claimed.extend(attempt for attempt, answer in zip(batch, answers, strict=True) if answer == "locked")
                ended.extend(attempt.job_id for attempt, answer in zip(batch, answers, strict=True) if answer == "done")

    before = _deadlocks(database)
    threads = [threading.Thread(target=working(work)) for work in (claim, settle) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert (len(ended), len(set(ended))) == (120, 120)
    assert {scope.in_use for scope in bench.scopes()} == {0}
    assert database.execute("SELECT count(*) FROM runwick.hold") == [(0,)]
    assert _deadlocks(database) == before


def _deadlocks(database: Database) -> int:
    rows = execute(database.url, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(rows[0][0])


def cancels(bench: Bench, operator: Store, called: bytes) -> Act[Any]:
    return operator.control(bench.order(ControlAction.CANCEL, called))


def expires(bench: Bench, operator: Store, called: bytes) -> Act[Any]:
    bench.clock.advance_ms(1_000)
    return operator.expire(APPLICATION, 100)


def widens(bench: Bench, operator: Store, called: bytes) -> Act[Any]:
    return operator.steer(bench.steering(SteerAction.SET_CAPACITY, LimitKind.RESOURCE, "printer", capacity=2))


@pytest.mark.parametrize("calls", [cancels, expires, widens])
def test_workers_are_told_of_whom_a_process_calls_that_serves_nobody(
    bench: Bench, calls: Callable[[Bench, Store, bytes], Act[Any]]
) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    (called,) = bench.dispatch(scopes=(PRINTER,), expires_in_ms=1_000)
    (waiter,) = bench.dispatch(scopes=(PRINTER,))
    assert bench.claim().parked == 2
    bench.succeed(holder)
    worker, operator = bench.another(), bench.another()
    assert ids_of(worker.run(worker.claim(bench.plan(kinds=frozenset({SEND})))).attempts) == []
    act = calls(bench, operator, called)
    woken = threading.Event()
    stop = worker.wake_on_work(woken.set)
    assert woken.wait(PATIENCE_S), "it has begun to listen"
    woken.clear()
    operator.run(act)
    assert woken.wait(PATIENCE_S), "it is told"
    assert waiter in ids_of(worker.run(worker.claim(bench.plan())).attempts)
    stop()
    worker.close()
    operator.close()
