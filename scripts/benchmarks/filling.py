"""Fills a store with very many rows, the same that the acts write.

On SQLite the acts themselves do it. On PostgreSQL they make one job, and a statement in the server makes all others
after its model: a million take seconds. Then the server may do what it does by itself in a quiet minute, so that every
measurement finds it alike.
"""

from typing import Final

import psycopg

from runwick.contracts.dispatching import Command
from runwick.contracts.identity import id_text
from scripts.benchmarks.application import Nothing
from scripts.benchmarks.ground import Ground, claimed_again, ready_commands, succeeded
from scripts.benchmarks.statements import sql

BATCH: Final = 1_000
"""Jobs per act: only the rows count here, not the limits of a dispatch."""


def fill_pending(ground: Ground, number: int) -> None:
    """Make `number` jobs of `Nothing` that are due.

    Args:
        ground: its store holds no other pending job that is due.
        number: how many, one at least.
    """
    if ground.is_postgres:
        _multiply(ground, "fill_pending", _dispatched(ground, 1), number)
    else:
        _dispatched(ground, number)


def fill_finished(ground: Ground, number: int) -> None:
    """Make `number` jobs of `Nothing` that succeeded at their first attempt; arguments as for `fill_pending`."""
    model = _dispatched(ground, 1 if ground.is_postgres else number)
    store, plan = ground.rw.store, ground.claim_plan(Nothing)
    while attempts := store.run(store.claim(claimed_again(plan))).attempts:
        store.run(store.settle(succeeded(attempts)))
    if ground.is_postgres:
        _multiply(ground, "fill_finished", model, number)


def _dispatched(ground: Ground, number: int) -> Command:
    """Dispatch so many jobs; answers the command of one of them."""
    store = ground.rw.store
    for done in range(0, number, BATCH):
        commands = ready_commands(ground.rw, Nothing(), min(BATCH, number - done))
        store.run(store.dispatch(commands))
    return commands[-1]


def _multiply(ground: Ground, statement: str, model: Command, number: int) -> None:
    with psycopg.connect(ground.url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(sql(statement), (id_text(model.job_id), number - 1))
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")
