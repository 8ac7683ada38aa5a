"""What only the SQLite store can show: how its statements find their rows, and the order of its append-only tables."""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from runwick.contracts.activity import ExecutorActivity
from runwick.contracts.attempts import Attempt, Kind, Lane
from runwick.contracts.controls import ControlAction, ControlReply, SteerAction
from runwick.contracts.errors import InvalidArgument, StoreError
from runwick.contracts.limits import LimitKind
from runwick.contracts.outcomes import Answer, BlackBox, Death, Outcome, OutcomeKind, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import Act
from runwick.stores.activities import ACTIVITY_MAX_BYTES
from runwick.stores.migrations import migrations
from runwick.stores.sqlite.lease import PRESENCE_KEPT_MS
from runwick.stores.sqlite.migrate import migrate
from runwick.stores.sqlite.revision import FOLDER
from runwick.stores.sqlite.statements import sql
from runwick.stores.sqlite.store import SqliteStore
from tests.conformance.ground import (
    APPLICATION,
    FAILURE,
    LEASE_MS,
    RECOVERY_MS,
    SUCCESS,
    USAGE,
    Bench,
    capped,
    capped_type,
    resource,
    sqlite_bench,
    window,
)

BY_KEY = {
    "active_holders": "SEARCH hot USING INDEX hot_active (active=?)",
    "audited": "SEARCH audit USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    "audited_floor": "SEARCH audit USING INTEGER PRIMARY KEY (rowid<?)",
    "audited_of_job": "SEARCH audit USING INDEX audit_job (job=? AND rowid>? AND rowid<?)",
    "backlog": "SEARCH hot USING COVERING INDEX hot_ready (lane=? AND kind=? AND due_at_ms<?)",
    "begin_charge": "SEARCH hot USING INTEGER PRIMARY KEY",
    "begin_kept": "SEARCH hot USING INTEGER PRIMARY KEY",
    "begin_read": "SEARCH hot USING INTEGER PRIMARY KEY",
    "call": "SEARCH hot USING INTEGER PRIMARY KEY",
    "cancels": "SEARCH hot USING INDEX hot_cancel (application=?)",
    "claim_hold": "SEARCH hot USING INTEGER PRIMARY KEY",
    "claim_known": "SEARCH claim USING COVERING INDEX sqlite_autoindex_claim_1",
    "claim_needs": "SEARCH hot USING INTEGER PRIMARY KEY",
    "claim_ready": "SEARCH hot USING COVERING INDEX hot_ready (lane=? AND kind=? AND (due_at_ms,job_id)>(?,?)",
    "claim_some": "SEARCH hot USING INTEGER PRIMARY KEY",
    "claim_survey": "SEARCH hot USING COVERING INDEX hot_ready (lane=? AND kind>?)",
    "claim_take": "SEARCH hot USING INTEGER PRIMARY KEY",
    "claim_whole": "SEARCH hot USING INDEX hot_ready (lane=? AND kind=? AND due_at_ms<?)",
    "command_known": "SEARCH command USING PRIMARY KEY",
    "control_cancel": "SEARCH hot USING INTEGER PRIMARY KEY",
    "control_open": "SEARCH job USING INTEGER PRIMARY KEY",
    "control_target": "SEARCH job USING INDEX sqlite_autoindex_job_1",
    "dispatch_hot": "SEARCH job USING INTEGER PRIMARY KEY",
    "dispatch_limits": "SEARCH hot USING INTEGER PRIMARY KEY",
    "dispatched": "SEARCH job USING INDEX sqlite_autoindex_job_1",
    "dispatched_some": "SEARCH job USING INDEX sqlite_autoindex_job_1",
    "end_attempt": "SEARCH hot USING INTEGER PRIMARY KEY",
    "end_attempt_otherwise": "SEARCH hot USING INTEGER PRIMARY KEY",
    "end_generation": "SEARCH hot USING INTEGER PRIMARY KEY",
    "end_hot": "SEARCH hot USING INTEGER PRIMARY KEY",
    "expirable": "SEARCH hot USING INDEX hot_expiry (application=? AND expires_at_ms>? AND expires_at_ms<?)",
    "expired": "SEARCH hot USING INDEX hot_lease (application=? AND lease_until_ms>? AND lease_until_ms<?)",
    "fences": "SEARCH hold USING PRIMARY KEY (job=?)",
    "held": "SEARCH hot USING INTEGER PRIMARY KEY",
    "held_plainly": "SEARCH claim USING COVERING INDEX sqlite_autoindex_claim_1 (token=?)",
    "holds_count": "SEARCH hold USING INDEX hold_scope (scope=?)",
    "holds_end": "SEARCH hold USING PRIMARY KEY (job=?)",
    "holds_of": "SEARCH hold USING PRIMARY KEY (job=?)",
    "job": "SEARCH job USING INDEX sqlite_autoindex_job_1",
    "job_attempts": "SEARCH attempt USING INDEX sqlite_autoindex_attempt_1",
    "job_result": "SEARCH attempt USING COVERING INDEX sqlite_autoindex_attempt_1",
    "lane_ahead": "SEARCH hot USING COVERING INDEX hot_ready (lane=? AND kind=? AND (due_at_ms,job_id)<(?,?))",
    "lease_mark": "SEARCH hot USING INTEGER PRIMARY KEY",
    "lease_renew": "SEARCH hot USING INTEGER PRIMARY KEY",
    "lease_valid": "SEARCH hot USING INTEGER PRIMARY KEY",
    "leased": "SEARCH hot USING INTEGER PRIMARY KEY",
    "line_ahead": "SEARCH hot USING COVERING INDEX hot_line (line=? AND rank=? AND job_id<?)",
    "line_edge": "SEARCH hot USING COVERING INDEX hot_line (line=? AND rank=? AND job_id>?)",
    "line_heads": "SEARCH hot USING COVERING INDEX hot_line (line=? AND rank=? AND job_id>?)",
    "line_length": "SEARCH hot USING COVERING INDEX hot_line (line=?)",
    "lines": "SEARCH scope USING INDEX scope_line (application=? AND id>?)",
    "list_all": "SEARCH job USING INTEGER PRIMARY KEY (rowid<?)",
    "list_busy": "SEARCH hot USING COVERING INDEX hot_lease (application=? AND lease_until_ms>?)",
    "list_ended": "SEARCH closing USING INDEX closing_unsuccessful (application=? AND state=? AND position<?)",
    "list_live": "SEARCH hot USING INTEGER PRIMARY KEY (rowid<?)",
    "list_present": "SEARCH job USING COVERING INDEX job_run (lane=? AND kind>?)",
    "list_run": "SEARCH job USING COVERING INDEX job_run (lane=? AND kind=? AND rowid<?)",
    "list_runs": "SEARCH job USING COVERING INDEX job_run (lane=? AND kind=? AND rowid<?)",
    "list_since": "SEARCH job USING INTEGER PRIMARY KEY (rowid>?)",
    "list_tenant": "SEARCH job USING COVERING INDEX job_tenant (application=? AND tenant=? AND rowid<?)",
    "list_tenants": "SEARCH job USING COVERING INDEX job_tenant (application=? AND tenant=? AND rowid<?)",
    "look_answer": "SEARCH look USING INDEX sqlite_autoindex_look_1",
    "looks": "SEARCH look USING INDEX look_open (worker=?)",
    "outlook_waiting": "SEARCH hot USING COVERING INDEX hot_ready (lane=? AND kind=? AND due_at_ms<?)",
    "park": "SEARCH hot USING INTEGER PRIMARY KEY",
    "presence_end": "SEARCH worker USING PRIMARY KEY",
    "presence_forget": "SEARCH worker USING COVERING INDEX worker_seen (seen_at_ms<?)",
    "queue_stands": "SEARCH lane USING COVERING INDEX sqlite_autoindex_lane_1 (application=? AND queue=?)",
    "rate_put": "SEARCH rate_window USING PRIMARY KEY (id=?)",
    "rates": "SEARCH rate USING INDEX rate_window_kind (application=? AND kind=? AND id>?)",
    "rates_read": "SEARCH rate USING PRIMARY KEY (id=?)",
    "rates_shown": "SEARCH rate USING PRIMARY KEY (id=?)",
    "release": "SEARCH hot USING INTEGER PRIMARY KEY",
    "release_charge": "SEARCH hot USING INTEGER PRIMARY KEY",
    "resolved": "SEARCH job USING INDEX sqlite_autoindex_job_1",
    "reused": "SEARCH reused USING PRIMARY KEY (operation=?)",
    "reused_forget": "SEARCH reused USING PRIMARY KEY (operation=?)",
    "reused_some": "SEARCH reused USING PRIMARY KEY (operation=?)",
    "reveal_attempt": "SEARCH attempt USING INDEX sqlite_autoindex_attempt_1 (job=?)",
    "reveal_job": "SEARCH job USING INDEX sqlite_autoindex_job_1 (id=?)",
    "reveal_payload": "SEARCH job USING INTEGER PRIMARY KEY",
    "reveal_stack": "SEARCH look USING INDEX sqlite_autoindex_look_1",
    "scope_put": "SEARCH scope USING PRIMARY KEY (id=?)",
    "scope_resize": "SEARCH scope USING PRIMARY KEY (id=?)",
    "scope_stands": "SEARCH scope USING PRIMARY KEY (id=?)",
    "scopes": "SEARCH scope USING INDEX scope_kind (application=? AND kind=? AND id>?)",
    "scopes_read": "SEARCH scope USING PRIMARY KEY (id=?)",
    "scopes_shown": "SEARCH scope USING PRIMARY KEY (id=?)",
    "settled_before": "SEARCH attempt USING INDEX sqlite_autoindex_attempt_1",
    "slots_read": "SEARCH given USING PRIMARY KEY (rate_window=? AND slot=?)",
    "stack": "SEARCH look USING INDEX sqlite_autoindex_look_1",
    "uniqueness_forget": "SEARCH uniqueness USING PRIMARY KEY (id=?)",
    "wait_retry": "SEARCH hot USING INTEGER PRIMARY KEY",
    "wait_unstarted": "SEARCH hot USING INTEGER PRIMARY KEY",
    "why": "SEARCH job USING INDEX sqlite_autoindex_job_1",
    "why_workers": "SEARCH worker USING INDEX worker_seen (seen_at_ms>?)",
    "window_holders": "SEARCH held USING PRIMARY KEY (id=?)",
}

TABLES = {
    *{"activity", "application", "attempt", "audit", "claim", "closing", "command", "detail", "hot", "job", "kind"},
    *{
        "given",
        "held",
        "hold",
        "lane",
        "look",
        "need",
        "policy",
        "rate",
        "rate_grant",
        "rate_window",
        "reused",
        "scope",
    },
    *{"uniqueness", "worker"},
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
    scanned = {step.split()[1] for step in steps if step.startswith("SCAN")}
    assert not scanned & TABLES, steps
    assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("claimed_before", "hot_lease"),
        ("outlook_leased", "hot_lease"),
        ("outlook_postponed", "hot_retrying"),
        ("outlook_postponed", "hot_called"),
        ("recover_of_worker", "hot_lease"),
    ],
)
def test_what_reads_many_rows_reads_no_others(statement: str, index: str) -> None:
    assert any(step.startswith(f"SEARCH hot USING INDEX {index} ") for step in plan(statement))


@pytest.mark.parametrize(("statement", "tables"), [("events", 4), ("audit", 1)])
def test_what_happened_is_read_from_a_position_on_without_sorting(statement: str, tables: int) -> None:
    steps = plan(statement)
    assert sum("USING INTEGER PRIMARY KEY (rowid>?)" in step for step in steps) == tables, steps
    assert not any("SCAN" in step or "TEMP B-TREE" in step for step in steps), steps


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


def test_who_stands_in_lines_is_counted_in_their_index() -> None:
    assert "SEARCH hot USING COVERING INDEX hot_blocked (lane=?)" in plan("outlook_lines")
    assert "SEARCH hot USING COVERING INDEX hot_blocked (lane=?)" in plan("backlog")


@pytest.mark.parametrize(
    ("statement", "step"),
    [
        ("list_jobs", "SEARCH closing USING INDEX sqlite_autoindex_closing_1 (job=? AND generation=?) LEFT-JOIN"),
        ("list_jobs", "SEARCH hot USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"),
        ("list_jobs", "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)"),
        ("runs_of_jobs", "SEARCH attempt USING INDEX sqlite_autoindex_attempt_1 (job=?)"),
        ("runs_of_jobs", "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)"),
    ],
)
def test_a_list_sorts_what_it_was_given_and_reads_nothing_else(statement: str, step: str) -> None:
    steps = plan(statement)
    assert step in steps, steps
    assert not {found.split()[1] for found in steps if found.startswith("SCAN")} & TABLES, steps


def test_the_last_runs_are_read_from_the_end_without_sorting() -> None:
    steps = plan("runs_last")
    assert steps[0] == "SEARCH attempt USING INTEGER PRIMARY KEY (rowid>?)"
    assert not any("TEMP B-TREE" in step for step in steps), steps


def test_plain_jobs_leave_no_row_among_the_needs(sqlite: Bench) -> None:
    sqlite.dispatch()
    sqlite.dispatch(scopes=(capped("reports", 9),))
    assert rows(sqlite, "SELECT count(*) FROM runwick_need") == [(0,)]
    sqlite.dispatch(scopes=(resource("printer"), resource("till"), capped("reports", 9)), rates=(window("bank", 1),))
    sqlite.dispatch(active_key="invoice-7")
    assert rows(
        sqlite,
        "SELECT hot.limited, hot.ahead, length(need.scopes), length(need.rates), need.active_key "
        "FROM runwick_need AS need JOIN runwick_hot AS hot USING (job) ORDER BY job",
    ) == [(2, 0, 32, 16, None), (0, 1, None, None, "invoice-7")]


def test_an_opened_generation_has_its_key_and_its_limits_again(sqlite: Bench) -> None:
    attempt = sqlite.claimed(active_key="invoice-7", scopes=(resource("printer"),))
    before = rows(sqlite, "SELECT active, limited, ahead FROM runwick_hot")
    sqlite.settle(attempt, FAILURE, JobState.FAILED, code="executions_exhausted")
    sqlite.control(sqlite.order(ControlAction.RETRY, attempt.job_id))
    assert rows(sqlite, "SELECT active, limited, ahead FROM runwick_hot") == before
    (again,) = sqlite.claim().attempts
    assert [(fence.scope, fence.value) for fence in again.fences] == [("printer", 2)]


def test_what_is_held_stands_in_rows_as_long_as_it_is_held(sqlite: Bench) -> None:
    held_rows = (
        "SELECT hold.job, hold.fence, hold.claim = hot.claim "
        "FROM runwick_hold AS hold JOIN runwick_hot AS hot USING (job)"
    )

    def lose(_: Attempt) -> object:
        sqlite.clock.advance_ms(LEASE_MS)
        return sqlite.recover()

    ends: list[Callable[[Attempt], object]] = [
        sqlite.succeed,
        lambda attempt: sqlite.retry(attempt, delay_ms=0),
        sqlite.release,
        lose,
    ]
    for token, end in enumerate(ends, 1):
        sqlite.dispatch(scopes=(resource("printer"), resource("paper", 2)))
        (attempt,) = sqlite.claim(free=1).attempts
        assert sorted(rows(sqlite, held_rows), key=str) == [(attempt.job, token, 1), (attempt.job, None, 1)]
        end(attempt)
        assert rows(sqlite, "SELECT job FROM runwick_hold") == []
        assert rows(sqlite, "SELECT sum(in_use) FROM runwick_scope") == [(0,)]
        assert rows(sqlite, "SELECT job FROM runwick_hot WHERE holds > 0 OR ahead") == []


def test_a_window_has_no_more_rows_than_it_allows_runs(sqlite: Bench) -> None:
    for _ in range(8):
        sqlite.dispatch(rates=(window("bank", 3, 1_000),))
        sqlite.claim()
        sqlite.clock.advance_ms(400)
    assert rows(sqlite, "SELECT count(*), max(slot) FROM runwick_rate_grant") == [(3, 2)]
    assert rows(sqlite, "SELECT granted FROM runwick_rate_window") == [(8,)]


def test_two_processes_go_by_each_others_pauses_and_scopes(sqlite: Bench) -> None:
    beside = sqlite.another()
    other = Bench("sqlite", beside, sqlite.clock, sqlite.administration, sqlite.another)
    try:
        sqlite.dispatch(3)
        assert len(other.claim(free=1).attempts) == 1
        sqlite.pause()
        assert other.claim().attempts == []
        other.resume()
        assert len(sqlite.claim(free=1).attempts) == 1
        beside.run(beside.register(APPLICATION, [], frozenset(), [capped("reports", 1)]))
        sqlite.dispatch()
        assert [len(sqlite.claim().attempts), sqlite.scope("reports", LimitKind.QUEUE).in_use] == [1, 1]
    finally:
        beside.close()


def test_a_change_of_what_may_be_claimed_shares_its_transaction_with_nobody_behind_it(sqlite: Bench) -> None:
    """Else that one would remember what a rollback takes away."""
    store = sqlite.store
    assert isinstance(store, SqliteStore)
    sqlite.dispatch()
    acts: list[Act[Any]] = [
        store.steer(sqlite.steering(SteerAction.PAUSE, LimitKind.QUEUE, "reports")),
        store.register(APPLICATION, [], frozenset(), [capped("reports", 1)]),
        store.dispatch([sqlite.command(scopes=(capped_type("reports.build", 1),))]),
    ]
    for act in acts:
        store._interned.has_news()
        with patch.object(store._driver, "_ends_transaction", lambda: False):
            sqlite.run(act)
        assert store._interned.has_news()
    with patch.object(store._driver, "_ends_transaction", lambda: False):
        sqlite.dispatch(scopes=(resource("printer"),))
    assert not store._interned.has_news()


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
    seen = "SELECT host, process, queues, executors, seen_at_ms, departed_at_ms FROM runwick_worker"
    sqlite.renew()
    now_ms = sqlite.clock.now_ms()
    assert rows(sqlite, seen) == [("worker-1", 7, '["reports"]', 2, now_ms, None)]
    sqlite.run(sqlite.store.depart(sqlite.presence()))
    assert rows(sqlite, seen) == [("worker-1", 7, '["reports"]', 2, now_ms, now_ms)]
    sqlite.worker = sqlite.ids.ordered()
    sqlite.clock.advance_ms(PRESENCE_KEPT_MS)
    sqlite.renew()
    assert len(rows(sqlite, seen)) == 2
    sqlite.clock.advance_ms(RECOVERY_MS)
    sqlite.renew()
    assert rows(sqlite, seen) == [("worker-1", 7, '["reports"]', 2, sqlite.clock.now_ms(), None)]


def test_what_a_forgotten_worker_told_goes_with_it(sqlite: Bench) -> None:
    sqlite.renew(executors=[ExecutorActivity(number=1, pool="main", phase="idle")])
    assert rows(sqlite, "SELECT count(*) FROM runwick_activity") == [(1,)]
    sqlite.worker = sqlite.ids.ordered()
    sqlite.clock.advance_ms(PRESENCE_KEPT_MS + 1)
    sqlite.renew()
    assert rows(sqlite, "SELECT count(*) FROM runwick_activity") == [(0,)]


def test_a_renewal_leaves_what_was_told_alone_unless_it_tells_something(sqlite: Bench) -> None:
    sqlite.renew(executors=[ExecutorActivity(number=1, pool="main", phase="idle")])
    told_at_ms = sqlite.clock.now_ms()
    sqlite.clock.advance_ms(1)
    sqlite.renew()
    assert rows(sqlite, "SELECT told_at_ms FROM runwick_activity") == [(told_at_ms,)]


def an_executor(number: int, *, busy: bool) -> ExecutorActivity:
    """One of which everything is told."""
    activity = ExecutorActivity(number=number, pool="main", phase="idle", process=1 << 22, attempts=10**9, restarts=9)
    return (
        msgspec.structs.replace(
            activity,
            phase="handle",
            job_id=b"j" * 16,
            attempt_id=b"a" * 16,
            name="reports.build",
            begun_at_ms=1_750_000_000_000,
            cpu_us=10**10,
            rss_bytes=1 << 40,
            restarted_for="memory",
        )
        if busy
        else activity
    )


def test_what_200_executors_do_is_kept_whole(sqlite: Bench) -> None:
    executors = [an_executor(number, busy=True) for number in range(200)]
    sqlite.renew(executors=executors)
    (worker,) = sqlite.run(sqlite.store.workers(APPLICATION))
    assert worker.executors == executors


def test_of_too_many_executors_the_idle_ones_are_left_out_first(sqlite: Bench) -> None:
    executors = [an_executor(number, busy=number % 4 == 3) for number in range(800)]
    sqlite.renew(executors=executors)
    (worker,) = sqlite.run(sqlite.store.workers(APPLICATION))
    kept = {executor.number for executor in worker.executors}
    assert kept >= {executor.number for executor in executors if executor.job_id is not None}
    assert 200 < len(kept) < 800
    ((size_bytes,),) = rows(sqlite, "SELECT length(executors) FROM runwick_activity")
    assert isinstance(size_bytes, int)
    assert ACTIVITY_MAX_BYTES - 1_000 < size_bytes <= ACTIVITY_MAX_BYTES


def test_a_death_stands_in_the_open_and_the_black_box_with_the_private_details(sqlite: Bench) -> None:
    box = BlackBox("the last line", "the stack")
    crash = Outcome(OutcomeKind.CRASHED, code="executor_crashed", death=Death("signal", 9), black_box=box)
    sqlite.settle(sqlite.claimed(), crash, JobState.FAILED, code="poison_job")
    assert rows(sqlite, "SELECT death, error, result, black_box FROM runwick_attempt JOIN runwick_detail") == [
        ('["signal",9,null,null]', None, None, '["the last line","the stack"]')
    ]


def test_a_batch_of_every_kind_of_end_fills_its_rows_in_order(sqlite: Bench) -> None:
    """More than are inserted at a time, of both widths."""
    sqlite.dispatch(40)
    attempts = sqlite.claim().attempts
    batch = [
        Settlement(attempt, FAILURE, JobState.RETRYING, "handler_failed", place)
        if place % 2
        else Settlement(attempt, SUCCESS, JobState.SUCCEEDED)
        for place, attempt in enumerate(attempts)
    ]
    assert sqlite.run(sqlite.store.settle(batch)) == [Answer.DONE] * 40
    found = rows(sqlite, "SELECT job, outcome, delay_ms FROM runwick_attempt ORDER BY job")
    assert found == [
        (settlement.attempt.job, settlement.outcome.kind.value, settlement.delay_ms) for settlement in batch
    ]


def test_controls_take_their_positions_behind_what_they_close(sqlite: Bench) -> None:
    leased, (waiting,) = sqlite.claimed(), sqlite.dispatch()
    (before,) = rows(sqlite, "SELECT max(position) FROM runwick_job")[0]
    assert isinstance(before, int)
    sqlite.cancel(leased.job_id, waiting)
    assert rows(sqlite, "SELECT position FROM runwick_closing") == [(before + 1,)]
    assert rows(sqlite, "SELECT position, action FROM runwick_audit") == [
        (before + 2, "cancel"),
        (before + 3, "cancel"),
    ]


def test_an_opened_generation_may_run_ahead_again(sqlite: Bench) -> None:
    attempt = sqlite.claimed()
    sqlite.settle(attempt, FAILURE, JobState.FAILED, code="executions_exhausted")
    sqlite.control(sqlite.order(ControlAction.RETRY, attempt.job_id))
    assert rows(sqlite, "SELECT ahead, executions, attempts, generation FROM runwick_hot") == [(1, 0, 0, 2)]


def test_a_generation_is_opened_once(sqlite: Bench) -> None:
    attempt = sqlite.claimed()
    sqlite.settle(attempt, FAILURE, JobState.FAILED, code="executions_exhausted")
    sqlite.control(sqlite.order(ControlAction.RETRY, attempt.job_id))
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        rows(
            sqlite,
            "INSERT INTO runwick_audit (position, application, actor, action, at_ms, job, generation) "
            "SELECT position + 1, application, actor, 'rerun', at_ms, job, generation FROM runwick_audit",
        )


def test_a_page_reads_no_more_rows_than_it_was_asked_for_whosever_they_are(sqlite: Bench) -> None:
    """So that one application's history is never searched for among millions of another's rows."""
    sqlite.dispatch(5, application="office")
    (job_id,) = sqlite.dispatch()
    first = sqlite.run(sqlite.store.events(APPLICATION, None, 4))
    assert (first.events, first.more) == ([], True)
    second = sqlite.run(sqlite.store.events(APPLICATION, first.cursor, 4))
    assert ([event.job_id for event in second.events], second.more) == ([job_id], False)
    third = sqlite.run(sqlite.store.events(APPLICATION, second.cursor, 4))
    assert (third.events, third.cursor, third.more) == ([], second.cursor, False)


@pytest.mark.parametrize("cursor", ["", "-1", "1.0", " 1", "١", "1" * 19, "9182.3"])
def test_what_is_no_cursor_of_this_store_is_refused(sqlite: Bench, cursor: str) -> None:
    whose = sqlite.run(sqlite.store.events(APPLICATION, None, 1)).cursor.partition(".")[0]
    cursor = f"{whose}.{cursor}"
    with pytest.raises(InvalidArgument) as refused:
        sqlite.events(after=cursor)
    assert refused.value.code == "invalid_argument"
    with pytest.raises(InvalidArgument):
        sqlite.audit(after=cursor)


def test_requests_wake_the_worker_they_are_for_in_this_process(sqlite: Bench) -> None:
    woken: list[str] = []
    stop = sqlite.store.wake_on_requests(sqlite.worker, lambda: woken.append("its worker"))
    sqlite.store.wake_on_requests(sqlite.ids.ordered(), lambda: woken.append("another"))
    attempt, (waiting,) = sqlite.claimed(), sqlite.dispatch()
    sqlite.marked(attempt)
    sqlite.cancel(waiting)
    assert woken == []
    order = sqlite.order(ControlAction.LOOK, attempt.job_id)
    sqlite.control(order)
    sqlite.cancel(attempt.job_id)
    assert woken == ["its worker"] * 2
    stop()
    sqlite.control(order)
    assert len(woken) == 2


def test_an_opened_generation_is_work_for_whoever_waits(sqlite: Bench) -> None:
    attempt = sqlite.claimed()
    sqlite.succeed(attempt)
    woken: list[int] = []
    sqlite.store.wake_on_work(lambda: woken.append(1))
    sqlite.control(sqlite.order(ControlAction.RERUN, attempt.job_id))
    assert woken == [1]


def test_what_is_given_back_is_work_for_whoever_waits(sqlite: Bench) -> None:
    sqlite.dispatch(2, scopes=(resource("printer"),))
    (attempt,) = sqlite.claim().attempts
    woken: list[int] = []
    sqlite.store.wake_on_work(lambda: woken.append(1))
    sqlite.succeed(attempt)
    assert woken == [1]


def test_a_claim_that_calls_others_wakes_their_workers(sqlite: Bench) -> None:
    """It meets a job that was called in and has expired, so the next one is called instead."""
    sqlite.dispatch(scopes=(resource("printer"),))
    (attempt,) = sqlite.claim().attempts
    sqlite.dispatch(scopes=(resource("printer"),), expires_in_ms=1_000)
    sqlite.dispatch(scopes=(resource("printer"),))
    assert sqlite.claim().parked == 2
    sqlite.succeed(attempt)
    sqlite.clock.advance_ms(1_000)
    sqlite.dispatch()
    woken: list[int] = []
    sqlite.store.wake_on_work(lambda: woken.append(1))
    claim = sqlite.claim(free=2)
    assert (len(claim.attempts), list(claim.called_in_ms)) == (1, [0])
    assert woken == [1]


def test_two_processes_cancel_and_one_of_them_does(sqlite: Bench) -> None:
    (job_id,) = sqlite.dispatch()
    order, other_order = (sqlite.order(ControlAction.CANCEL, job_id) for _ in range(2))
    beside = sqlite.another()
    try:
        (done,), (late,) = sqlite.control(order).answers, beside.run(beside.control(other_order)).answers
        assert (done.code, late.code) == (None, "stale_revision")
        assert beside.run(beside.control(order)) == ControlReply([done], replayed=True)
        with pytest.raises(StoreError) as refused:
            beside.run(beside.control(msgspec.structs.replace(order, reason="another")))
        assert refused.value.code == "operation_conflict"
    finally:
        beside.close()
    assert rows(sqlite, "SELECT count(*) FROM runwick_command") == [(1,)]
    assert rows(sqlite, "SELECT count(*) FROM runwick_audit") == [(1,)]


def test_threads_that_send_one_command_change_a_job_once_and_hear_the_same(sqlite: Bench) -> None:
    attempt = sqlite.claimed()
    sqlite.succeed(attempt)
    order = sqlite.order(ControlAction.RERUN, attempt.job_id)
    others = [msgspec.structs.replace(order, command_id=sqlite.ids.ordered()) for _ in range(4)]
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(sqlite.control, [order] * 4 + others))
    same = {msgspec.json.encode(reply.answers) for reply in replies[:4]}
    assert len(same) == 1
    codes = Counter(reply.answers[0].code for reply in replies if not reply.replayed)
    assert codes[None] == 1
    assert codes.total() - 1 == codes["stale_generation"]
    assert rows(sqlite, "SELECT action, generation FROM runwick_audit") == [("rerun", 2)]
    assert rows(sqlite, "SELECT generation, revision FROM runwick_hot") == [(2, sqlite.job(attempt.job_id).revision)]


def test_a_stored_payload_that_is_no_text_is_only_its_handlers_trouble(sqlite: Bench) -> None:
    """Found a bad escape in one row, everybody who reads others goes on."""
    (job_id,) = sqlite.dispatch()
    rows(sqlite, "UPDATE runwick_job SET payload = X'FF5C7544383000', metadata = X'5C'")
    assert sqlite.job(job_id).state is JobState.PENDING
    assert [event.job_id for event in sqlite.events()] == [job_id]
    assert isinstance(sqlite.store, SqliteStore)
    assert migrate(sqlite.store.path, sqlite.clock, sqlite.ids).applied == ()
    (attempt,) = sqlite.claim().attempts
    assert attempt.payload == b"\xff\\uD80\x00"
    assert sqlite.succeed(attempt) is Answer.DONE
