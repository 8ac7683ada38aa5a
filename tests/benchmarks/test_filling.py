"""Rows that a statement multiplied are those that the acts write, and the acts work on them."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from runwick.contracts.identity import id_text, issued_at_ms, job_of_operation
from runwick.contracts.outcomes import Answer
from scripts.benchmarks.application import AT_ONCE, NAME, Nothing, Scoped
from scripts.benchmarks.figures import Assignment
from scripts.benchmarks.filling import fill_blocked, fill_finished, fill_pending
from scripts.benchmarks.ground import CLAIM, Ground, claimed_again, fresh_ground, succeeded
from scripts.benchmarks.shapes import LANES
from scripts.benchmarks.sites import PostgresSite

NUMBER = CLAIM + 2

OWN = {"id", "job", "operation_id", "attempt_id", "position"}
"""Columns in which no two rows agree. Times differ as well, `xid` where one transaction wrote many."""


@pytest.fixture
def ground(assignment: Assignment) -> Iterator[Ground]:
    with fresh_ground(assignment.site) as ground:
        yield ground


@pytest.fixture
def in_postgres(postgres_site: PostgresSite) -> Iterator[Ground]:
    with fresh_ground(postgres_site) as ground:
        yield ground


def rows(ground: Ground, table: str) -> list[dict[str, Any]]:
    """In the order in which they were written; the first one is the model."""
    with psycopg.connect(ground.url, row_factory=dict_row) as connection:
        order = "due_at_ms" if table == "hot" else "position"
        return connection.execute(f"SELECT * FROM runwick.{table} ORDER BY {order}".encode()).fetchall()


def check_twins(twins: list[dict[str, Any]]) -> None:
    """That they agree in what is not a row's own, and that the times of a row keep their distances."""
    for column in twins[0]:
        values = {twin[column] for twin in twins}
        if column in OWN:
            assert len(values) == NUMBER, column
        elif column != "xid" and not column.endswith("_at_ms"):
            assert len(values) == 1, column
    times = [column for column in twins[0] if column.endswith("_at_ms") and twins[0][column] is not None]
    assert len({tuple(twin[column] - twin[times[0]] for column in times) for twin in twins}) == 1


def test_pending_twins_are_like_their_model(in_postgres: Ground) -> None:
    fill_pending(in_postgres, NUMBER)
    jobs = rows(in_postgres, "job")
    check_twins(jobs)
    check_twins(rows(in_postgres, "hot"))
    assert {job["id"].bytes for job in jobs} == {hot["job"].bytes for hot in rows(in_postgres, "hot")}
    for job in jobs[1:]:
        assert job["id"].bytes == job_of_operation(job["operation_id"].bytes)
        assert (job["id"].version, issued_at_ms(job["id"].bytes)) == (7, job["created_at_ms"])


def test_twins_of_several_models_share_their_lanes_and_limits(in_postgres: Ground) -> None:
    fill_pending(in_postgres, 5 * CLAIM, Scoped("one"), LANES[:5])
    hot = rows(in_postgres, "hot")
    assert set(Counter(row["lane"] for row in hot).values()) == {CLAIM}
    assert len({row["lane"] for row in hot[CLAIM : CLAIM + 10]}) == 5, "they come in turn, not lane by lane"
    assert {row["limited"] for row in hot} == {True}
    assert len({tuple(job["scopes"]) for job in rows(in_postgres, "job")}) == 1


def test_blocked_jobs_stand_in_the_line_and_the_others_run(ground: Ground) -> None:
    lanes = LANES[:3]
    running = fill_blocked(ground, AT_ONCE + 7, lanes)
    outlook = ground.rw.store.run(ground.rw.store.outlook(NAME, lanes, ground.claim_plan(Scoped).kinds))
    assert (len(running), outlook.leased, outlook.due, outlook.blocked) == (AT_ONCE, AT_ONCE, 7, 7)


def test_finished_twins_are_like_their_model(in_postgres: Ground) -> None:
    fill_finished(in_postgres, NUMBER)
    assert rows(in_postgres, "closing") == []  # a success tells its end itself
    for table in ("job", "attempt"):
        check_twins(rows(in_postgres, table))
    assert rows(in_postgres, "hot") == []
    oldest = rows(in_postgres, "attempt")[1]
    view = in_postgres.rw.get(str(oldest["job"]))
    assert (view.state, len(view.attempts), view.attempts[0].outcome) == ("succeeded", 1, "succeeded")
    assert view.attempts[0].attempt_id == str(oldest["attempt_id"])


def test_what_was_filled_is_claimed_oldest_first_and_settled(ground: Ground) -> None:
    fill_finished(ground, NUMBER)
    fill_pending(ground, NUMBER)
    store, plan = ground.rw.store, ground.claim_plan(Nothing)
    found = []
    while attempts := store.run(store.claim(claimed_again(plan))).attempts:
        answers = store.run(store.settle(succeeded(attempts)))
        assert answers == [Answer.DONE] * len(attempts)
        found += [(attempt.created_at_ms, attempt.job_id) for attempt in attempts]
    assert len(found) == NUMBER
    assert found == sorted(found)
    assert {ground.rw.get(id_text(job_id)).state for _, job_id in found[:3]} == {"succeeded"}
    outlook = store.run(store.outlook(NAME, [turn.lane for turn in plan.turns], plan.kinds))
    assert (outlook.due, outlook.later, outlook.leased, outlook.undecodable) == (0, 0, 0, 0)
