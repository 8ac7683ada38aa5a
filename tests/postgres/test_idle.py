"""Limits with room beside a line of which nobody could be called: whoever stands there is called a moment later."""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest

from runwick.contracts.attempts import Attempt
from runwick.contracts.identity import id_text
from runwick.contracts.limits import CALLED_MAX
from runwick.contracts.policies import JobPolicy
from runwick.policy.limits import UNUSED_AFTER_MS
from scripts.servers.postgres import PostgresServer
from tests.conformance.ground import APPLICATION, HIGH, LEASE_MS, LOW, MEDIUM, Bench, ids_of, resource, window
from tests.conformance.places import Database
from tests.postgres.asking import PATIENCE_S, eventually

PRINTER, SCANNER = resource("printer"), resource("scanner")
PROVIDER = window("provider", 1)
A_SLOW_TIME = """
CREATE OR REPLACE FUNCTION runwick.now_ms() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    IF (SELECT slow FROM public.pace) THEN
      PERFORM pg_advisory_lock_shared(7);
      PERFORM pg_advisory_unlock_shared(7);
    END IF;
    RETURN (SELECT now_ms FROM public.test_time);
  END
$$
"""


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


@contextmanager
def somebody_holds(database: Database, *jobs: bytes) -> Iterator[None]:
    """Another transaction has locked the rows of these jobs."""
    with psycopg.connect(database.url) as somebody:
        somebody.execute("SELECT FROM runwick.hot WHERE job = ANY (%s::uuid[]) FOR UPDATE", (list(map(id_text, jobs)),))
        yield


def waiting_in_lines(database: Database) -> list[bytes]:
    rows: list[Any] = database.execute("SELECT job FROM runwick.hot WHERE line IS NOT NULL ORDER BY job")
    return [job.bytes for (job,) in rows]


def is_called(database: Database, *jobs: bytes) -> Callable[[], bool]:
    rows: list[Any] = [(id_text(job),) for job in sorted(jobs)]
    return lambda: (
        database.execute("SELECT job::text FROM runwick.hot WHERE called IS NOT NULL AND claim IS NULL ORDER BY job")
        == rows
    )


def settles(bench: Bench, holder: Attempt, called: bytes) -> None:
    bench.succeed(holder)


def releases(bench: Bench, holder: Attempt, called: bytes) -> None:
    bench.release(holder)
    bench.cancel(holder.job_id)


def recovers(bench: Bench, holder: Attempt, called: bytes) -> None:
    bench.clock.advance_ms(LEASE_MS)
    bench.recover(delay_ms=LEASE_MS)


def widens(bench: Bench, holder: Attempt, called: bytes) -> None:
    bench.limit("printer", 2)


@pytest.mark.parametrize("makes_room", [settles, releases, recovers, widens])
def test_whom_an_act_could_not_call_is_called_when_the_row_is_free(
    bench: Bench, database: Database, makes_room: Callable[[Bench, Attempt, bytes], None]
) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    (waiter,) = bench.dispatch(scopes=(PRINTER,))
    assert bench.claim().parked == 1
    with somebody_holds(database, waiter):
        makes_room(bench, holder, waiter)
        assert waiting_in_lines(database) == [waiter]
    eventually(is_called(database, waiter), "the one in the line is called")
    assert ids_of(bench.claim().attempts) == [waiter]


def cancels(bench: Bench, called: bytes) -> None:
    bench.cancel(called)


def expires(bench: Bench, called: bytes) -> None:
    bench.clock.advance_ms(1_000)
    assert bench.run(bench.store.expire(APPLICATION, 10)) == 1


def meets_it_expired(bench: Bench, called: bytes) -> None:
    bench.clock.advance_ms(1_000)
    assert bench.claim().attempts == []


@pytest.mark.parametrize("leaves", [cancels, expires, meets_it_expired])
def test_a_call_that_could_not_be_passed_on_is_passed_on_when_the_row_is_free(
    bench: Bench, database: Database, leaves: Callable[[Bench, bytes], None]
) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    (called,) = bench.dispatch(scopes=(PRINTER,), expires_in_ms=1_000)
    (heir,) = bench.dispatch(scopes=(PRINTER,))
    assert bench.claim().parked == 2
    bench.succeed(holder)
    with somebody_holds(database, heir):
        leaves(bench, called)
        assert waiting_in_lines(database) == [heir]
    eventually(is_called(database, heir), "the next one is called")
    assert ids_of(bench.claim().attempts) == [heir]


def test_what_the_sweep_could_not_call_is_called_when_the_row_is_free(bench: Bench, database: Database) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    (deserted,) = bench.dispatch(lane=HIGH, scopes=(PRINTER,))
    (waiter,) = bench.dispatch(lane=LOW, scopes=(PRINTER,))
    bench.claim()
    bench.succeed(holder)
    with somebody_holds(database, waiter):
        assert bench.tend().called == 0
    eventually(is_called(database, deserted, waiter), "the sweep's call is made up for")


def test_a_promise_that_could_not_be_passed_on_is_given_when_the_row_is_free(bench: Bench, database: Database) -> None:
    bench.succeed(bench.claimed(rates=(PROVIDER,)))
    promised, heir = bench.dispatch(2, rates=(PROVIDER,))
    claim = bench.claim()
    assert (claim.deferred, claim.parked) == (1, 1)
    with somebody_holds(database, heir):
        bench.cancel(promised)
        assert waiting_in_lines(database) == [heir]
    eventually(is_called(database, heir), "it is promised the place")
    bench.clock.advance_ms(1_000)
    assert ids_of(bench.claim().attempts) == [heir]


def test_a_leaving_that_could_not_be_promised_is_promised_when_the_row_is_free(
    bench: Bench, database: Database
) -> None:
    bench.succeed(bench.claimed(rates=(PROVIDER,)))
    promised, heir = bench.dispatch(2, rates=(PROVIDER,))
    bench.claim()
    bench.clock.advance_ms(1_000)
    with somebody_holds(database, heir):
        assert ids_of(bench.claim().attempts) == [promised]
        assert waiting_in_lines(database) == [heir]
    eventually(is_called(database, heir), "it is promised the place")


def test_unused_room_that_the_sweep_could_not_give_is_given_when_the_row_is_free(
    bench: Bench, database: Database
) -> None:
    bench.succeed(bench.claimed(rates=(PROVIDER,)))
    (deserted,) = bench.dispatch(lane=HIGH, rates=(PROVIDER,))
    (heir,) = bench.dispatch(lane=LOW, rates=(PROVIDER,))
    bench.claim()
    bench.clock.advance_ms(1_000 + UNUSED_AFTER_MS)
    with somebody_holds(database, heir):
        assert bench.tend().called == 0
    eventually(is_called(database, deserted, heir), "the sweep's call is made up for")


def test_no_more_are_called_than_are_owed(bench: Bench, database: Database) -> None:
    bench.dispatch(8, scopes=(resource("printer", 3),))
    first, second, third = bench.claim().attempts
    waiters = waiting_in_lines(database)
    with somebody_holds(database, *waiters):
        bench.succeed(first)
        bench.succeed(second)
    eventually(is_called(database, *waiters[:2]), "as many as there are places")
    bench.succeed(third)
    assert is_called(database, *waiters[:3])()


def test_raising_a_capacity_calls_as_many_as_there_is_room_for_however_long_the_line_is(
    bench: Bench, database: Database
) -> None:
    bench.dispatch(1, scopes=(PRINTER,))
    bench.claim()
    for _ in range(4):
        bench.dispatch(100, scopes=(PRINTER,))
    while bench.claim(free=8).again:
        pass
    waiters = waiting_in_lines(database)
    raised = 2 * CALLED_MAX + 3
    assert len(waiters) == 400 > raised
    bench.limit("printer", 1 + raised)
    eventually(is_called(database, *waiters[:raised]), "there is room for them")
    assert waiting_in_lines(database) == waiters[raised:]


def test_whose_queue_is_paused_is_not_asked_for(bench: Bench, database: Database) -> None:
    """A limit is idle for the sake of those alone who could be called."""
    holder = bench.claimed(scopes=(PRINTER,))
    bench.dispatch(scopes=(PRINTER,))
    assert bench.claim().parked == 1
    bench.pause()
    bench.succeed(holder)
    (limit,) = [scope.id for scope in bench.scopes()]
    answer = database.execute("SELECT * FROM runwick.call_again(%s::uuid, 1, 1)", id_text(limit))
    assert answer == []


def test_workers_are_told_when_it_is_made_up_for(bench: Bench, database: Database) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    (waiter,) = bench.dispatch(scopes=(PRINTER,))
    bench.claim()
    with closing(bench.another()) as worker:
        assert worker.run(worker.claim(bench.plan())).attempts == []
        woken = threading.Event()
        stop = worker.wake_on_work(woken.set)
        assert woken.wait(PATIENCE_S), "it has begun to listen"
        with somebody_holds(database, waiter):
            bench.succeed(holder)
            woken.clear()
        assert woken.wait(PATIENCE_S), "it is told"
        eventually(is_called(database, waiter), "it is called")
        stop()


def test_a_claim_that_came_too_late_for_a_job_keeps_nobody_waiting(bench: Bench, database: Database) -> None:
    """The claim's statement began while the job stood in its lane. Then another claim parks the job; the first one
    locks its row, finds that it is not what it looks for, and holds it all the same until its transaction ends;
    meanwhile the place in whose line the job stands becomes free."""
    database.execute("CREATE TABLE public.pace AS SELECT false AS slow")
    database.execute(A_SLOW_TIME)
    with closing(bench.another()) as slow, psycopg.connect(database.url) as gate, psycopg.connect(database.url) as user:
        bench.dispatch(scopes=(PRINTER,))
        (holder,) = slow.run(slow.claim(bench.plan())).attempts
        (waiter,) = bench.dispatch(scopes=(PRINTER,))
        (elsewhere,) = bench.dispatch(lane=LOW, scopes=(SCANNER,))
        gate.execute("SELECT pg_advisory_lock(7)")
        database.execute("UPDATE public.pace SET slow = true")
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(slow.run(slow.claim(bench.plan()))))
        thread.start()
        eventually(functools.partial(waits_for, database, "advisory"), "the slow claim has begun")
        database.execute("UPDATE public.pace SET slow = false")
        assert bench.claim(lanes=[MEDIUM]).parked == 1
        user.execute("SELECT FROM runwick.scope WHERE key = 'scanner' FOR UPDATE")
        gate.execute("SELECT pg_advisory_unlock(7)")
        eventually(functools.partial(waits_for, database, "transactionid"), "the slow claim has locked what it found")
        bench.succeed(holder)
        assert waiting_in_lines(database) == [waiter]
        user.rollback()
        thread.join()
        assert ids_of(answers[0].attempts) == [elsewhere]
        eventually(is_called(database, waiter), "there is room for it")
    assert ids_of(bench.claim().attempts) == [waiter]


def test_attempts_of_a_divided_claim_bear_the_ids_that_are_stored_also_where_a_row_changed_meanwhile(
    bench: Bench, database: Database
) -> None:
    """Such a row is taken as it stands by then, which can be in another place of its lane."""
    database.execute("CREATE TABLE public.pace AS SELECT false AS slow")
    database.execute(A_SLOW_TIME)
    lone = JobPolicy(max_executions=1, max_crashes=1)
    bench.dispatch(3, policy=lone)
    divided = bench.claim(free=1, ahead=2)
    assert divided.stopped_at_lone, "the next ones are looked for row by row"
    for attempt in divided.attempts:
        bench.succeed(attempt)
    bench.clock.advance_ms(10)
    (earlier,) = bench.dispatch(policy=lone)
    bench.clock.advance_ms(10)
    bench.dispatch(policy=lone)
    bench.clock.advance_ms(10)
    with psycopg.connect(database.url) as gate:
        gate.execute("SELECT pg_advisory_lock(7)")
        database.execute("UPDATE public.pace SET slow = true")
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(bench.claim(free=5, ahead=2)))
        thread.start()
        eventually(functools.partial(waits_for, database, "advisory"), "the claim has begun")
        database.execute("UPDATE public.pace SET slow = false")
        later = "UPDATE runwick.hot SET due_at_ms = due_at_ms + 15 WHERE job = %s::uuid"
        database.execute(later, id_text(earlier))
        gate.execute("SELECT pg_advisory_unlock(7)")
        thread.join()
    (claim,) = answers
    stored = database.execute(
        "SELECT hot.job, runwick.attempt_id(claim.first_attempt_id, array_position(claim.jobs, hot.job)) "
        "FROM runwick.hot JOIN runwick.claim ON claim.token = hot.claim"
    )
    assert len(claim.attempts) == len(stored) > 1
    assert {attempt.job_id: attempt.attempt_id for attempt in claim.attempts} == {
        UUID(str(job)).bytes: UUID(str(attempt_id)).bytes for job, attempt_id in stored
    }


def waits_for(database: Database, what: str) -> bool:
    rows = database.execute(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = %s "
        "AND starts_with(application_name, 'runwick')",
        what,
    )
    return bool(rows)
