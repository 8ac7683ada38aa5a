"""What limits cost those who have none: nothing. And what they cost those who have some, however many wait."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick.contracts.attempts import Attempt
from runwick.contracts.limits import PASSED_MAX
from runwick.contracts.outcomes import Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.policy.lines import LOOKED_MAX
from runwick.stores.migrations import migrations
from runwick.stores.sqlite.revision import FOLDER
from runwick.stores.sqlite.statements import sql
from tests.conformance.ground import BUILD, KINDS, MEDIUM, Bench, capped, capped_type, resource, sqlite_bench, window
from tests.sqlite.recording import recorded

DISPATCH = ["next_position", "dispatch_job", "dispatch_hot"]
CLAIM = ["interned_heights", "claim_known", "claim_survey", "claim_whole", "claim_add", "claim_take"]
_FILL = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO runwick_hot (
  job, application, lane, kind, state, due_at_ms, job_id, payload_bytes, max_executions, ahead, line, rank
)
SELECT
  i, 1, CASE WHEN i <= ? THEN 9 ELSE 1 END, 1, 'pending', 0, CAST(printf('%016d', i) AS BLOB), 2, 3, 0, zeroblob(16), 0
FROM n
"""
SETTLE = ["held_plainly", "next_position", "end_attempt", "end_generation", "end_hot"]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = sqlite_bench(tmp_path)
    bench.run(bench.store.register("shop", [MEDIUM], KINDS))
    bench.dispatch()
    bench.succeed(bench.claim().attempts[0])  # from now on its names are known
    yield bench
    bench.store.close()


def settled(bench: Bench, attempts: list[Attempt]) -> None:
    success = Outcome(OutcomeKind.SUCCEEDED)
    bench.run(bench.store.settle([Settlement(attempt, success, JobState.SUCCEEDED) for attempt in attempts]))


def test_a_plain_job_meets_no_statement_of_limits(bench: Bench) -> None:
    with recorded() as steps:
        bench.dispatch(3)
        attempts = bench.claim().attempts
        settled(bench, attempts[:2])
        bench.release(*attempts[2:])
    assert [step.statement for step in steps] == [*DISPATCH, *CLAIM, *SETTLE, "held", "release"]


def test_nor_does_it_where_other_queues_and_types_have_scopes(bench: Bench) -> None:
    bench.run(bench.store.register("shop", [], frozenset(), [capped("mails", 1), capped_type("mails.send", 1)]))
    bench.claim()  # reads what is new
    with recorded() as steps:
        bench.dispatch(3)
        settled(bench, bench.claim().attempts)
    assert [step.statement for step in steps] == [*DISPATCH, *CLAIM, *SETTLE]


def test_a_type_whose_scope_is_known_is_dispatched_as_any_other(bench: Bench) -> None:
    needs = (capped("reports", 5), capped_type(BUILD.name, 5))
    bench.dispatch(scopes=needs)
    bench.claim()
    with recorded() as steps:
        bench.dispatch(3, scopes=needs)
    assert [step.statement for step in steps] == DISPATCH


def test_a_grant_reads_one_slot_and_writes_one_however_many_the_window_allows(bench: Bench) -> None:
    for most in (24, 100_000):
        for _ in range(3):
            bench.dispatch(rates=(window(f"provider-{most}", most),))
            with recorded() as steps:
                assert len(bench.claim().attempts) == 1
            (read,) = (step.parameters for step in steps if step.statement == "slots_read")
            (written,) = (step.parameters for step in steps if step.statement == "grant_put")
            assert isinstance(read, tuple)
            assert read[1].count(",") <= 1  # where it is granted, and what it promises
            assert len(written) == 1


def test_a_claim_beside_a_long_line_runs_as_many_statements_as_beside_a_short_one(bench: Bench) -> None:
    counts = []
    for jobs in (4, 3 * PASSED_MAX):
        key = f"printer-{jobs}"
        for _ in range(jobs // 100 + 1):
            bench.dispatch(min(jobs, 100), scopes=(resource(key),))
        attempts: list[Attempt] = []
        while (claim := bench.claim()).again or claim.parked or claim.attempts:
            attempts += claim.attempts
        with recorded() as steps:
            settled(bench, attempts)
            (successor,) = bench.claim().attempts
        counts.append([step.statement for step in steps])
        assert successor.fences[0].value == 2
    assert counts[0] == counts[1]


@pytest.mark.parametrize("paused", [0, 50])
def test_a_line_is_read_from_its_head_and_never_walked(paused: int) -> None:
    """Whatever stands behind it, and whatever is paused in front of it, as far as one act looks."""
    steps = [_steps_to_read_the_head(behind, paused) for behind in (10, 20_000)]
    assert steps[0] == steps[1]


def _steps_to_read_the_head(behind: int, paused: int) -> int:
    """How many of its own instructions SQLite needs for 4 jobs."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.executescript(sql("migration_table"))
        for migration in migrations(FOLDER):
            connection.executescript(migration.text)
        connection.execute(_FILL, (paused + behind, paused))
        count = 0

        def tick() -> int:
            nonlocal count
            count += 1
            return 0

        connection.set_progress_handler(tick, 1)
        found = connection.execute(sql("line_heads"), (bytes(16), 0, b"", LOOKED_MAX, "[9]", 4)).fetchall()
        assert [job for _, job in found] == [paused + 1, paused + 2, paused + 3, paused + 4]
        return count
    finally:
        connection.close()
