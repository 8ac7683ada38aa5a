"""Fills a store with very many rows, the same that the acts write.

On SQLite and Redis the acts themselves do it. On PostgreSQL they make one job for each lane, and a statement in the
server makes all others after these models: a million take seconds. Then the server may do what it does by itself in a
quiet minute, so that every measurement finds it alike. What meets a full limit is moved into its line by claims.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
import psycopg

from runwick import Job
from runwick.contracts.attempts import Attempt, Lane, LaneTurn
from runwick.contracts.dispatching import Command
from runwick.contracts.identity import id_text
from runwick.contracts.states import JobState
from scripts.benchmarks.application import AT_ONCE, Nothing, Scoped
from scripts.benchmarks.ground import Ground, claimed_again, failed, ready_commands, succeeded
from scripts.benchmarks.statements import sql

BATCH: Final = 1_000
"""Jobs per act: only the rows count here, not the limits of a dispatch."""
KEY: Final = "the only one"
"""Of all `Scoped` jobs of `fill_blocked`."""
LEASE_MS: Final = 3_600_000
"""Of those that run while the others are blocked: it outlasts every measurement."""


def fill_pending(ground: Ground, number: int, job: Job | None = None, lanes: Sequence[Lane] = ()) -> None:
    """Make `number` jobs that are due.

    Args:
        ground: its store holds no other pending job that is due.
        number: how many, one at least.
        job: `Nothing` if left out. It has no uniqueness keys: no two live jobs have the same.
        lanes: they go there in turn; its own lane if left out.
    """
    job = job or Nothing()
    if ground.is_postgres:
        _multiply(ground, "fill_pending", _dispatched(ground, min(number, len(lanes) or 1), job, lanes), number)
    else:
        _dispatched(ground, number, job, lanes)


def fill_finished(ground: Ground, number: int) -> None:
    """Make `number` jobs of `Nothing` that succeeded at their first attempt; arguments as for `fill_pending`."""
    models = _dispatched(ground, 1 if ground.is_postgres else number, Nothing(), ())
    store, plan = ground.rw.store, ground.claim_plan(Nothing)
    while attempts := store.run(store.claim(claimed_again(plan))).attempts:
        store.run(store.settle(succeeded(attempts)))
    if ground.is_postgres:
        _multiply(ground, "fill_finished", models, number)


def fill_ended(ground: Ground, number: int, state: Literal[JobState.SUCCEEDED, JobState.FAILED], tenant: str) -> None:
    """Make `number` jobs of `Nothing` of a tenant whose first attempt ended so; otherwise as `fill_finished`."""
    models = _dispatched(ground, 1 if ground.is_postgres else number, Nothing(), (), tenant)
    store, plan = ground.rw.store, ground.claim_plan(Nothing)
    while attempts := store.run(store.claim(claimed_again(plan))).attempts:
        store.run(store.settle(succeeded(attempts) if state is JobState.SUCCEEDED else failed(attempts)))
    if ground.is_postgres:
        _multiply(ground, "fill_finished", models, number)


def fill_blocked(ground: Ground, number: int, lanes: Sequence[Lane]) -> list[Attempt]:
    """Make jobs that wait in the line of one scope, of these lanes in turn, and others that fill the scope.

    Args:
        ground: as for `fill_pending`.
        number: how many, more than `AT_ONCE`.
        lanes: where they stand before they meet the limit.

    Returns:
        The `AT_ONCE` of them that run.
    """
    fill_pending(ground, number, Scoped(KEY), lanes)
    turns = [LaneTurn(lane, AT_ONCE) for lane in lanes]
    store, plan = ground.rw.store, ground.claim_plan(Scoped, turns=turns, lease_ms=LEASE_MS)
    running: list[Attempt] = []
    parked = 0
    while (claim := store.run(store.claim(claimed_again(plan)))).attempts or claim.again or claim.parked:
        running += claim.attempts
        parked += claim.parked
    assert (len(running), parked) == (AT_ONCE, number - AT_ONCE), f"{len(running)} run, {parked} wait in the line"
    if ground.is_postgres:
        _rest(ground)
    return running


def _dispatched(
    ground: Ground, number: int, job: Job, lanes: Sequence[Lane], tenant: str | None = None
) -> list[Command]:
    """Dispatch so many jobs; answers the last commands, one for each lane if there are so many."""
    store = ground.rw.store
    for done in range(0, number, BATCH):
        ready = ready_commands(ground.rw, job, min(BATCH, number - done), lanes)
        commands = [msgspec.structs.replace(command, tenant=tenant) for command in ready]
        store.run(store.dispatch(commands))
    return commands[: len(lanes) or 1]


def _multiply(ground: Ground, statement: str, models: Sequence[Command], number: int) -> None:
    with psycopg.connect(ground.url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(sql(statement), ([id_text(model.job_id) for model in models], number - len(models)))
    _rest(ground)


def _rest(ground: Ground) -> None:
    """What a server does in a quiet minute."""
    with psycopg.connect(ground.url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")
