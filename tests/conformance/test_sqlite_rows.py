"""What only the SQLite store can show: how its statements find their rows, and the order of its append-only tables."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.outcomes import Answer, Outcome, OutcomeKind, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState, Priority
from runwick.stores.migrations import migrations
from runwick.stores.sqlite.lease import PRESENCE_KEPT_MS
from runwick.stores.sqlite.revision import FOLDER
from runwick.stores.sqlite.statements import sql
from runwick.stores.sqlite.store import SqliteStore
from tests.conformance.ground import FAILURE, LEASE_MS, SUCCESS, USAGE, Bench, held, sqlite_bench

BY_KEY = {
    "begin_charge": "SEARCH hot USING INTEGER PRIMARY KEY",
    "begin_read": "SEARCH hot USING INTEGER PRIMARY KEY",
    "claim_known": "SEARCH claim USING COVERING INDEX sqlite_autoindex_claim_1",
    "claim_ready": "SEARCH hot USING COVERING INDEX hot_ready (lane=? AND kind=? AND (due_at_ms,job_id)>(?,?)",
    "claim_survey": "SEARCH hot USING COVERING INDEX hot_ready (lane=? AND kind>?)",
    "claim_take": "SEARCH hot USING INTEGER PRIMARY KEY",
    "dispatch_hot": "SEARCH job USING INTEGER PRIMARY KEY",
    "dispatched": "SEARCH job USING INDEX sqlite_autoindex_job_1",
    "end_attempt": "SEARCH hot USING INTEGER PRIMARY KEY",
    "end_generation": "SEARCH hot USING INTEGER PRIMARY KEY",
    "end_hot": "SEARCH hot USING INTEGER PRIMARY KEY",
    "expired": "SEARCH hot USING INDEX hot_lease (application=? AND lease_until_ms>? AND lease_until_ms<?)",
    "held": "SEARCH hot USING INTEGER PRIMARY KEY",
    "job": "SEARCH job USING INDEX sqlite_autoindex_job_1",
    "job_attempts": "SEARCH attempt USING INDEX sqlite_autoindex_attempt_1",
    "settled_before": "SEARCH attempt USING INDEX sqlite_autoindex_attempt_1",
    "job_result": "SEARCH attempt USING COVERING INDEX sqlite_autoindex_attempt_1",
    "lease_renew": "SEARCH hot USING INTEGER PRIMARY KEY",
    "lease_valid": "SEARCH hot USING INTEGER PRIMARY KEY",
    "leased": "SEARCH hot USING INTEGER PRIMARY KEY",
    "outlook_waiting": "SEARCH hot USING COVERING INDEX hot_ready (lane=? AND kind=? AND due_at_ms<?)",
    "presence_forget": "SEARCH worker USING COVERING INDEX worker_seen (seen_at_ms<?)",
    "resolved": "SEARCH job USING INDEX sqlite_autoindex_job_1",
    "release": "SEARCH hot USING INTEGER PRIMARY KEY",
    "wait_retry": "SEARCH hot USING INTEGER PRIMARY KEY",
    "wait_unstarted": "SEARCH hot USING INTEGER PRIMARY KEY",
}


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Bench]:
    bench = sqlite_bench(tmp_path)
    yield bench
    bench.store.close()


def rows(bench: Bench, statement: str, *parameters: object) -> list[tuple[object, ...]]:
    assert isinstance(bench.store, SqliteStore)
    connection = sqlite3.connect(bench.store.path)
    try:
        with connection:
            return connection.execute(statement, parameters).fetchall()
    finally:
        connection.close()


def plan(statement: str) -> list[str]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(sql("migration_table"))
        for migration in migrations(FOLDER):
            connection.executescript(migration.text)
        # Without numbers, which some releases of Python take by name alone; the plan does not depend on them.
        code = re.sub(r"\?\d+", "?", re.sub(r"--.*", "", sql(statement)))
        found = connection.execute(f"EXPLAIN QUERY PLAN {code}", [None] * code.count("?"))
        # A step names the alias where there is one; the prefix is not of interest here.
        return [row[3].replace("runwick_", "") for row in found]
    finally:
        connection.close()


@pytest.mark.parametrize("statement", BY_KEY)
def test_no_act_searches_through_a_table_or_sorts(statement: str) -> None:
    steps = plan(statement)
    assert any(step.startswith(BY_KEY[statement]) for step in steps), steps
    tables = {"application", "attempt", "claim", "closing", "detail", "hot", "job", "kind", "lane", "policy", "worker"}
    scanned = {step.split()[1] for step in steps if step.startswith("SCAN")}
    assert not scanned & tables, steps
    assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize(
    ("statement", "index"),
    [("claimed_before", "hot_lease"), ("outlook_leased", "hot_lease"), ("outlook_retrying", "hot_retrying")],
)
def test_what_reads_many_rows_reads_no_others(statement: str, index: str) -> None:
    assert any(step.startswith(f"SEARCH hot USING INDEX {index} ") for step in plan(statement))


def test_the_gate_reads_one_entry_of_the_workers_and_no_jobs() -> None:
    steps = plan("enter")
    assert "SEARCH worker USING COVERING INDEX worker_seen" in steps
    assert {step.split()[1] for step in steps if step.startswith("SCAN")} <= {"application", "CONSTANT"}


def test_the_operators_figures_are_counted_in_indexes() -> None:
    steps = plan("applications")
    assert sum("SEARCH hot USING" in step and "hot_lease" in step for step in steps) == 2
    assert "SEARCH worker USING INDEX worker_seen (seen_at_ms>?)" in steps


def test_the_next_position_is_read_from_the_ends_of_the_tables() -> None:
    assert sum(step.startswith("SEARCH") for step in plan("next_position")) == 4


def test_positions_number_all_append_only_rows_in_the_order_of_their_commits(sqlite: Bench) -> None:
    highest = 0

    def fresh() -> list[tuple[object, ...]]:
        nonlocal highest
        found = rows(
            sqlite,
            "SELECT position, 'job', id FROM runwick_job "
            "UNION ALL SELECT position, 'attempt', job FROM runwick_attempt "
            "UNION ALL SELECT position, 'closing', job FROM runwick_closing ORDER BY position",
        )
        assert len({position for position, *_ in found}) == len(found)
        new = [row[1:] for row in found if isinstance(row[0], int) and row[0] > highest]
        highest = max(position for position, *_ in found if isinstance(position, int))
        return new

    job_ids = sqlite.dispatch(2)
    assert fresh() == [("job", job_ids[0]), ("job", job_ids[1])]
    first, second = sqlite.claim().attempts
    assert fresh() == []
    batch = [
        Settlement(first, SUCCESS, JobState.SUCCEEDED),
        Settlement(second, FAILURE, JobState.RETRYING, delay_ms=0),
    ]
    sqlite.run(sqlite.store.settle(batch))
    assert fresh() == [("attempt", first.job), ("attempt", second.job), ("closing", first.job)]
    sqlite.dispatch()
    assert [table for table, _ in fresh()] == ["job"]
    sqlite.claim(free=1)
    sqlite.clock.advance_ms(LEASE_MS)
    sqlite.recover(JobState.FAILED, code="executions_exhausted")
    assert fresh() == [("attempt", second.job), ("closing", second.job)]


def test_positions_do_not_return_below_the_floor(sqlite: Bench) -> None:
    sqlite.dispatch()
    rows(sqlite, "UPDATE runwick_store SET position_floor = 500")
    sqlite.dispatch()
    assert rows(sqlite, "SELECT max(position) FROM runwick_job") == [(501,)]


def test_two_processes_learn_each_others_names(sqlite: Bench) -> None:
    beside = sqlite.another()
    other = Bench("sqlite", beside, sqlite.clock, sqlite.administration, sqlite.another)
    try:
        for here, there, name in ((sqlite, other, "first"), (other, sqlite, "second"), (sqlite, other, "third")):
            kind, lane, policy = Kind(name, 1), Lane(name, Priority.HIGH), JobPolicy(max_crashes=len(name))
            (job_id,) = here.dispatch(kind=kind, lane=lane, policy=policy)
            (attempt,) = there.claim(lanes=[lane], kinds=frozenset({kind})).attempts
            assert (attempt.job_id, attempt.kind, attempt.lane, attempt.policy) == (job_id, kind, lane, policy)
            assert here.succeed(attempt) is Answer.DONE
    finally:
        beside.close()


def test_a_job_leaves_the_hot_table_when_it_ends(sqlite: Bench) -> None:
    sqlite.succeed(sqlite.claimed())
    assert rows(sqlite, "SELECT count(*) FROM runwick_hot") == [(0,)]
    assert rows(sqlite, "SELECT count(*), max(revision) FROM runwick_closing") == [(1, 3)]


def test_costs_stand_in_columns_of_their_own(sqlite: Bench) -> None:
    sqlite.settle(sqlite.claimed(), Outcome(OutcomeKind.SUCCEEDED, usage=USAGE), JobState.SUCCEEDED)
    assert rows(sqlite, "SELECT wall_us, cpu_us, rss_peak_bytes, usage ->> 6 FROM runwick_attempt") == [
        (1_200, 1_000, 1 << 33, 12)
    ]


def test_a_worker_is_seen_says_good_bye_and_is_forgotten_after_a_day(sqlite: Bench) -> None:
    def beat() -> None:
        sqlite.run(sqlite.store.renew(sqlite.presence(), held(), LEASE_MS, 1_000))

    seen = "SELECT host, process, queues, executors, seen_at_ms, departed_at_ms FROM runwick_worker"
    beat()
    now_ms = sqlite.clock.now_ms()
    assert rows(sqlite, seen) == [("worker-1", 7, '["reports"]', 2, now_ms, None)]
    sqlite.run(sqlite.store.depart(sqlite.presence()))
    assert rows(sqlite, seen) == [("worker-1", 7, '["reports"]', 2, now_ms, now_ms)]
    sqlite.worker = sqlite.ids.ordered()
    sqlite.clock.advance_ms(PRESENCE_KEPT_MS)
    beat()
    assert len(rows(sqlite, seen)) == 2
    sqlite.clock.advance_ms(1_000)
    beat()
    assert rows(sqlite, seen) == [("worker-1", 7, '["reports"]', 2, sqlite.clock.now_ms(), None)]


def test_a_cancel_that_was_asked_for_reaches_the_recovery(sqlite: Bench) -> None:
    attempt = sqlite.claimed()
    rows(sqlite, "UPDATE runwick_hot SET cancel_requested_at_ms = 5 WHERE job = ?", attempt.job)
    sqlite.clock.advance_ms(LEASE_MS)
    (expired,) = sqlite.recover(JobState.CANCELLED, code="lease_lost")
    assert expired.cancel_requested
    assert sqlite.job(attempt.job_id).state is JobState.CANCELLED
