"""Procrastinate on PostgreSQL: two processes of ``procrastinate worker``, since each has one thread for handlers."""

from collections.abc import Sequence
from typing import Final

import psycopg

from scripts.peers.system import WORKERS, Place, System

_APP: Final = "--app=scripts.peers.sides.procrastinate.app"
_LEFT: Final = """
SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing') AND task_name <> 'retry_stalled'
"""


class Procrastinate(System):
    name = "procrastinate"
    title = "Procrastinate"
    package = "procrastinate"
    side = "procrastinate"
    store = "postgres"
    promise = "at least once"
    settings = (
        "psycopg 3 with its pool, two processes of `procrastinate worker`, 10 jobs at once up to 20 ms, one "
        "above, and the periodic task that its documentation gives for stalled jobs, every minute; heartbeats as they "
        "come (10 s, stalled after 30 s)"
    )
    noop_jobs = 3_000

    def prepare(self, place: Place) -> Sequence[Sequence[str]]:
        return [[self.program("procrastinate"), _APP, "schema", "--apply"]]

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        concurrency = "10" if place.job_ms <= 20 else "1"
        return [[self.program("procrastinate"), _APP, "worker", "--concurrency", concurrency]] * WORKERS

    def left(self, place: Place) -> int | None:
        with psycopg.connect(place.url) as connection:
            ((left,),) = connection.execute(_LEFT).fetchall()
        return int(left)


SYSTEMS: Final = (Procrastinate(),)
