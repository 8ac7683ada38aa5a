"""Oban for Python on PostgreSQL: two processes of ``oban start``, which is how its open edition uses two cores."""

from collections.abc import Sequence
from typing import Final

import psycopg

from scripts.peers.system import WORKERS, Place, System

_DSN: Final = "application_name=bench"
"""It asks for one; the database itself is named by the ``PG…`` variables."""


class Oban(System):
    name = "oban"
    title = "Oban for Python"
    package = "oban"
    side = "oban"
    store = "postgres"
    promise = "at least once"
    python = "3.12"
    settings = (
        "two processes of `oban start` with uvloop, queue limit 50 for jobs that do nothing, 10 up to 20 ms, 2 "
        "above; rescue of orphans as it comes (looked for once a minute, after 300 s)"
    )
    noop_jobs = 30_000

    def prepare(self, place: Place) -> Sequence[Sequence[str]]:
        return [[self.program("oban"), "install", "--dsn", _DSN]]

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        command = [self.program("oban"), "start", "--dsn", _DSN, "--queues", f"default:{_limit(place.job_ms)}"]
        return [[*command, "--log-level", "WARNING", "--cron-modules", "scripts.peers.sides.oban"]] * WORKERS

    def left(self, place: Place) -> int | None:
        with psycopg.connect(place.url) as connection:
            ((left,),) = connection.execute("SELECT count(*) FROM oban_jobs WHERE state <> 'completed'").fetchall()
        return int(left)


def _limit(job_ms: float) -> int:
    """Jobs in hand at once: with many long ones, one process would still work when the other has none left."""
    if job_ms < 1:
        return 50
    return 10 if job_ms <= 20 else 2


SYSTEMS: Final = (Oban(),)
