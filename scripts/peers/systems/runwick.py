"""Runwick, on each of its stores: one ``runwick-supervise`` with two executors, accounting on as always."""

import contextlib
from collections.abc import Sequence
from typing import Final

from runwick import Runwick
from runwick.contracts.listing import JobFilter
from runwick.contracts.states import LEASED_STATES
from scripts.peers.system import PROJECT, WORKERS, OurSystem, Place

NAME: Final = "bench"
"""Of the application."""
_PAGE: Final = 100


class OnStore(OurSystem):
    """What is the same on all stores."""

    side = "runwick"
    promise = "at least once"
    settings = "one `runwick-supervise` with two executors, accounting on, leases as they come (60 s)"

    def prepare(self, place: Place) -> Sequence[Sequence[str]]:
        return [[self.program("runwick"), "migrate", "--connection-env", "RUNWICK_STORE"]]

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        command = [self.program("python"), "-m", "runwick_supervisor.command", "scripts.peers.sides.runwick"]
        return [[*command, "--app-dir", str(PROJECT), "--executors", str(WORKERS), "--log-format", "json"]]

    def left(self, place: Place) -> int | None:
        with contextlib.closing(Runwick(NAME, store=place.store_variables["RUNWICK_STORE"])) as rw:
            backlogs = rw.store.run(rw.store.backlogs(NAME))
            leased = rw.store.run(rw.store.jobs(NAME, JobFilter(states=LEASED_STATES), None, None, _PAGE))
        return sum(each.due + each.later + each.blocked for each in backlogs) + len(leased.jobs)


class OnPostgres(OnStore):
    name = "runwick-postgres"
    title = "Runwick, PostgreSQL"
    store = "postgres"
    noop_jobs = 100_000


class OnSqlite(OnStore):
    name = "runwick-sqlite"
    title = "Runwick, SQLite"
    store = "sqlite"
    noop_jobs = 80_000


class OnRedis(OnStore):
    name = "runwick-redis"
    title = "Runwick, Redis"
    store = "redis"
    noop_jobs = 80_000


SYSTEMS: Final = (OnPostgres(), OnSqlite(), OnRedis())
