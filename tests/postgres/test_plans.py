"""Plans: each statement of each act finds its rows by an index, however many there are, analyzed or not."""

import time
from collections.abc import Iterator
from typing import Final

import psycopg
import pytest

from runwick.contracts.activity import Mark, StackAnswer
from runwick.contracts.attempts import Attempt, Lane
from runwick.contracts.controls import TARGETS_MAX, ControlAction
from runwick.contracts.identity import id_text, job_of_operation
from runwick.contracts.limits import LimitKind
from runwick.contracts.outcomes import Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState, Priority
from scripts.servers.postgres import PostgresServer
from tests.conformance.ground import (
    APPLICATION,
    FAILURE,
    KINDS,
    LARGE,
    LEASE_MS,
    SUCCESS,
    USAGE,
    Bench,
    capped,
    held,
    resource,
    window,
)
from tests.postgres.asking import eventually, execute
from tests.postgres.crowds import FAR_MS, LANES, crowd, server_time_bench
from tests.postgres.explained import Log, Plan, explain_all

TABLES: Final = frozenset(
    {
        *("attempt", "audit", "claim", "closing", "command", "detail", "hot", "job", "look"),
        *("hold", "rate_grant", "rate_window", "reused", "scope", "uniqueness"),
    }
)
MAILS: Final = Lane("mails", Priority.HIGH)
"""A lane that the crowd does not stand in."""
READ_WHOLE: Final = {"costliest_cpu": "attempt", "costliest_rss": "attempt"}
"""Questions of people that read a whole table."""
BY_INDEX: Final = frozenset({"Index Scan", "Index Only Scan", "Tid Scan"})
"""Or by the place of a row that the statement has found by an index and locked."""
JOINS_IN_MEMORY: Final = frozenset({"Hash Join", "Merge Join", "Materialize"})
SORTED_MAX: Final = 200
PAGES_MAX: Final = {
    "audit": 500,
    "begin": 100,
    "call_again": 300,
    "cancel": 3_000,
    "claim": 2_500,
    "claim_divided": 2_500,
    "claim_judged": 8_000,
    "claimed_before": 2_000,
    "depart": 100,
    "dispatch": 2_000,
    "dispatch_plain": 100,
    "dispatch_keyed": 8_000,
    "events": 2_500,
    "expire": 1_000,
    "expired": 8_000,
    "intake": 100,
    "job": 150,
    "keyed": 3_000,
    "look": 200,
    "names": 300,
    "named": 100,
    "names_add": 300,
    "application_add": 100,
    "queues": 150,
    "rates": 300,
    "register": 100,
    "release": 5_000,
    "renew": 2_500,
    "reopen": 3_000,
    "resolved": 100,
    "scopes": 400,
    "scopes_add": 300,
    "settle": 6_000,
    "settle_plain": 3_000,
    "stack": 100,
    "steer_capacity": 300,
    "steer_queue": 3_000,
    "tend": 3_000,
    "why": 1_000,
    "workers": 100,
}
"""Pages of tables and indexes that a statement for 128 jobs may look at; `hot` alone has more than all of these."""


@pytest.fixture(params=["planned when filled", "planned when analyzed", "planned when empty"])
def bench(request: pytest.FixtureRequest, database: str) -> Iterator[Bench]:
    """A store in long use. A plan lasts as long as its connection, whatever comes into the tables meanwhile."""
    explain_all(database)
    bench = server_time_bench(database)
    if request.param == "planned when empty":
        bench.run(bench.store.register(APPLICATION, LANES, KINDS))
        bench.dispatch(3, deadline_ms=FAR_MS)
        do_everything(bench, database, 1)
    crowd(database)
    if request.param == "planned when analyzed":
        execute(database, "ANALYZE")
    yield bench
    bench.store.close()


def claimed(bench: Bench, count: int) -> list[Attempt]:
    attempts = bench.claim(free=count).attempts
    assert len(attempts) == count
    return attempts


def do_everything(bench: Bench, url: str, count: int) -> None:
    """Every act, with so many jobs where it takes several."""
    store, run = bench.store, bench.run
    run(store.register(APPLICATION, LANES, KINDS))
    plan = bench.plan(free=count)
    first = run(store.claim(plan)).attempts
    assert run(store.claim(plan)).attempts == first
    second, third = claimed(bench, count), claimed(bench, count)
    run(store.renew(bench.report(executors=[]), held(*first), LEASE_MS, 1))
    run(store.release(second))
    outcome = Outcome(OutcomeKind.SUCCEEDED, result=b"1", usage=USAGE)
    run(store.settle([Settlement(attempt, outcome, JobState.SUCCEEDED) for attempt in first]))
    run(store.settle([Settlement(attempt, FAILURE, JobState.RETRYING, delay_ms=9) for attempt in third]))
    judged = run(store.claim(bench.plan(free=count, payload_bytes=2 * count - 1))).attempts
    assert len(judged) == max(1, count - 1)
    numbers = Outcome(OutcomeKind.SUCCEEDED, usage=USAGE)
    run(store.settle([Settlement(attempt, numbers, JobState.SUCCEEDED) for attempt in judged]))
    assert bench.succeed(second[0]) == "not_yours"
    bench.dispatch(100, deadline_ms=FAR_MS)
    operation = bench.command(payload=LARGE, lane=LANES[0], deadline_ms=FAR_MS)
    run(store.dispatch([operation]))
    (large,) = claimed(bench, 1)
    assert run(store.begin(large)) is not None
    run(store.resolve(APPLICATION, operation.operation_id))
    run(store.job(APPLICATION, job_of_operation(operation.operation_id)))
    run(store.outlook(APPLICATION, LANES, KINDS))
    run(store.costliest(APPLICATION, "cpu_us", 3))
    run(store.costliest(APPLICATION, "rss_peak_bytes", 3))
    execute(url, f"UPDATE runwick.claim SET check_at_ms = 0 WHERE token = '{large.claim_token.hex()}'")
    execute(url, f"UPDATE runwick.hot SET lease_until_ms = 0 WHERE job = '{large.job_id.hex()}'")
    assert len(bench.recover(JobState.FAILED)) == 1
    operate(bench, url, count)
    meet_limits(bench, count)
    be_idle(bench, url)
    run(store.depart(bench.presence()))
    bench.dispatch(application=f"newcomer-{count}", deadline_ms=FAR_MS)


def operate(bench: Bench, url: str, count: int) -> None:
    """What operators do, with so many jobs, and what comes of it."""
    attempts = claimed(bench, count)
    bench.renew(marks=[Mark(attempt.job, attempt.claim_token, 5) for attempt in attempts])
    (seen,) = bench.control(bench.order(ControlAction.LOOK, attempts[0].job_id)).answers
    assert [look.attempt_id for look in bench.renew(*attempts).looks] == [seen.attempt_id]
    bench.renew(*attempts, stacks=[StackAnswer(attempts[0].attempt_id, "line 1")])
    assert bench.run(bench.store.stack(APPLICATION, attempts[0].attempt_id)) is not None
    leased, waiting = attempts[: count // 2], attempts[count // 2 :][:TARGETS_MAX]
    bench.cancel(*(attempt.job_id for attempt in leased))
    assert len(bench.renew(*attempts).cancels) == len(leased)
    bench.release(*attempts)
    bench.cancel(*(attempt.job_id for attempt in waiting))
    cancelled = [attempt.job_id for attempt in attempts][:TARGETS_MAX]
    opened = bench.control(bench.order(ControlAction.RETRY, *cancelled)).answers
    assert {answer.state for answer in opened} == {JobState.PENDING}
    page = bench.run(bench.store.events(APPLICATION, None, 100))
    bench.run(bench.store.events(APPLICATION, page.cursor, 100))
    bench.run(bench.store.audit(APPLICATION, None, 100))
    assert len(bench.run(bench.store.workers(APPLICATION))) == 1
    execute(url, f"UPDATE runwick.hot SET expires_at_ms = 1 WHERE job = '{cancelled[0].hex()}'")
    assert bench.run(bench.store.expire(APPLICATION, 100)) == 1
    assert len(claimed(bench, count)) == len(bench.recover(limit=1_000, worker=bench.worker))


def meet_limits(bench: Bench, count: int) -> None:
    """So many jobs with limits, and what comes of them."""
    store, run = bench.store, bench.run
    run(store.register(APPLICATION, [MAILS], KINDS, [capped("mails", 1_000)]))
    commands = [
        bench.command(
            lane=MAILS,
            deadline_ms=FAR_MS,
            scopes=(resource(f"account-{number % 60}"), resource(f"own-{count}-{number}")),
            rates=(window("provider", 100, 3_600_000),) if number % 2 else (),
            active_key=f"{count}-{number}",
        )
        for number in range(count)
    ]
    for start in range(0, count, 100):
        bench.send(*commands[start : start + 100])
    claim = bench.claim(lanes=[MAILS], free=count)
    assert (len(claim.attempts), claim.parked) == (min(count, 60), max(0, count - 60))
    run(store.why(APPLICATION, commands[-1].job_id))
    run(store.queues(APPLICATION))
    run(store.scopes(APPLICATION, LimitKind.RESOURCE, None, 100))
    run(store.rates(APPLICATION, LimitKind.RESOURCE, None, 100))
    run(store.settle([Settlement(attempt, SUCCESS, JobState.SUCCEEDED) for attempt in claim.attempts]))
    bench.pause("mails")
    bench.resume("mails")
    bench.limit("mails", 999, LimitKind.QUEUE)
    assert bench.tend().mended == 0
    while attempts := bench.claim(lanes=[MAILS], free=count).attempts:
        bench.settle(attempts[0], FAILURE, JobState.FAILED)
        bench.release(*attempts[1:])
    bench.limit("mails", 1_000, LimitKind.QUEUE)


def be_idle(bench: Bench, url: str) -> None:
    """A limit has room, and for a moment nobody can be called."""
    holder, waiter = bench.dispatch(2, lane=MAILS, deadline_ms=FAR_MS, scopes=(resource("idle"),))
    (attempt,) = bench.claim(lanes=[MAILS]).attempts
    assert attempt.job_id == holder
    with psycopg.connect(url) as somebody:
        somebody.execute("SELECT FROM runwick.hot WHERE job = %s::uuid FOR UPDATE", (id_text(waiter),))
        bench.succeed(attempt)
    has_line = "SELECT 1 FROM runwick.scope WHERE key = 'idle' AND has_line"
    eventually(lambda: not execute(url, has_line), "the next one is called")
    (attempt,) = bench.claim(lanes=[MAILS]).attempts
    bench.succeed(attempt)


def test_every_act_reads_by_index_sorts_little_and_looks_at_few_pages(
    bench: Bench, database: str, postgres: PostgresServer
) -> None:
    log = Log(postgres)
    do_everything(bench, database, 128)
    plans = [plan for plan in log.plans() if plan.statement not in ("server", "opened", "notify")]
    # Whoever has met all names already reads none by its number.
    assert {plan.statement for plan in plans} | {"named"} == {*PAGES_MAX, *READ_WHOLE, "outlook"}
    for plan in plans:
        check(plan)


def check(plan: Plan) -> None:
    for table in TABLES - {READ_WHOLE.get(plan.statement)}:
        assert {node.kind for node in plan.on(table)} <= BY_INDEX, (plan.statement, table, plan.on(table))
    kinds = {node.kind for node in plan.nodes}
    assert not kinds & JOINS_IN_MEMORY, (plan.statement, kinds)
    assert not any("Bitmap" in kind for kind in kinds), (plan.statement, kinds)
    assert all(node.rows <= SORTED_MAX for node in plan.nodes if node.kind == "Sort"), plan.statement
    assert plan.pages <= PAGES_MAX.get(plan.statement, plan.pages), plan.statement


def test_what_limits_need_is_read_by_index(bench: Bench, database: str) -> None:
    """Also inside the functions, whose plans no log shows."""
    read_whole = (
        "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname IN "
        f"({', '.join(repr(table) for table in sorted(TABLES))}) ORDER BY relname"
    )
    # Statistics are sent when a session ends.
    bench.store.close()
    alone(database)
    before = execute(database, read_whole)
    bench.store = bench.another()
    meet_limits(bench, 100)
    bench.store.close()
    alone(database)
    assert execute(database, read_whole) == before


def alone(database: str) -> None:
    """Wait until nobody else is in the database."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ends_s = time.monotonic() + 10
    while execute(database, others) != [(0,)]:
        assert time.monotonic() < ends_s, "a session does not end"
        time.sleep(0.01)


def test_what_is_counted_is_counted_in_the_index(bench: Bench, postgres: PostgresServer) -> None:
    log = Log(postgres)
    outlook = bench.run(bench.store.outlook(APPLICATION, LANES, KINDS))
    (plan,) = [plan for plan in log.plans() if plan.statement == "outlook"]
    counted = [node for node in plan.on("hot") if node.kind == "Index Only Scan"]
    assert [node.by for node in counted] == ["hot_ready"]
    assert counted[0].rows >= outlook.due > 90_000


def claim_plans(log: Log) -> list[Plan]:
    return [plan for plan in log.plans() if plan.statement == "claim"]


@pytest.fixture
def watched(database: str) -> Iterator[Bench]:
    """A bench in a database of its own, with the crowd."""
    crowd(database)
    explain_all(database)
    bench = server_time_bench(database)
    yield bench
    bench.store.close()


@pytest.mark.parametrize("of", ["ended", "leased by others", "of another kind"])
def test_f085_claims_stay_flat_whatever_stands_in_front(
    watched: Bench, database: str, postgres: PostgresServer, of: str
) -> None:
    changes = {
        "ended": "DELETE FROM runwick.hot WHERE job <= public.id_of(90000)",
        "leased by others": "UPDATE runwick.hot SET claim = job, lease_until_ms = runwick.now_ms() + 60000, "
        "state = 'running' WHERE job <= public.id_of(90000)",
        "of another kind": "UPDATE runwick.hot SET kind = 9 WHERE job <= public.id_of(90000)",
    }
    with psycopg.connect(database) as somebody:
        somebody.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        somebody.execute("SELECT count(*) FROM runwick.lane")
        # From now on, nothing that is deleted can be cleared away.
        execute(database, changes[of])
        log = Log(postgres)
        for _ in range(4):
            attempts = claimed(watched, 128)
            watched.run(watched.store.settle([Settlement(one, SUCCESS, JobState.SUCCEEDED) for one in attempts]))
        sweep, *behind_the_mark = claim_plans(log)
    # The first one passes all of it: rows, or entries in the index alone where the kind says enough.
    assert sweep.pages > PAGES_MAX["claim"] or of == "of another kind"
    for plan in behind_the_mark:
        assert plan.pages <= PAGES_MAX["claim"]
        assert sum(node.removed for node in plan.on("hot")) == 0


def test_f053_one_expired_lease_is_found_among_ten_thousand_healthy_ones_in_one_pass(
    watched: Bench, database: str, postgres: PostgresServer
) -> None:
    """The healthy ones stand in front: their claims are due to be looked at, because renewals do not touch these."""
    execute(
        database,
        "UPDATE runwick.claim SET check_at_ms = extract(epoch FROM clock_timestamp() - interval '1 hour') * 1000 "
        "+ ('x' || right(token::text, 8))::bit(32)::integer - x'61a80'::integer; "
        "UPDATE runwick.claim SET check_at_ms = check_at_ms + 20000 WHERE token = public.id_of(405000); "
        "UPDATE runwick.hot SET lease_until_ms = 2 WHERE job = public.id_of(405000)",
    )
    log = Log(postgres)
    (expired,) = watched.recover()
    assert expired.job_id.hex().endswith("62e08")
    looks = [plan for plan in log.plans() if plan.statement == "expired"]
    assert max(plan.pages for plan in looks) <= PAGES_MAX["expired"]
    assert all({node.kind for node in plan.on("hot")} <= BY_INDEX for plan in looks)
    assert watched.recover() == []
    assert len([plan for plan in log.plans() if plan.statement == "expired"]) == 1
