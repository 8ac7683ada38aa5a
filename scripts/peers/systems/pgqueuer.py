"""PgQueuer on PostgreSQL: two processes of ``pgq run``, as its documentation advises for more than one core."""

from collections.abc import Sequence
from typing import Final

import psycopg

from scripts.peers.system import WORKERS, Place, System


class PgQueuer(System):
    name = "pgqueuer"
    title = "PgQueuer"
    package = "pgqueuer"
    side = "pgqueuer"
    store = "postgres"
    promise = "at least once"
    settings = (
        "durable schema with its recommended autovacuum settings, asyncpg, two processes of `pgq run`, batches of "
        "100 for jobs that do nothing, 10 up to 20 ms, 2 above; heartbeat as it comes (30 s)"
    )
    noop_jobs = 60_000

    def prepare(self, place: Place) -> Sequence[Sequence[str]]:
        return [[self.program("pgq"), "install"], [self.program("pgq"), "autovac"]]

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        command = [self.program("pgq"), "run", "scripts.peers.sides.pgqueuer:worker"]
        return [[*command, "--batch-size", _batch(place.job_ms)]] * WORKERS

    def left(self, place: Place) -> int | None:
        with psycopg.connect(place.url) as connection:
            ((left,),) = connection.execute("SELECT count(*) FROM pgqueuer").fetchall()
        return int(left)


def _batch(job_ms: float) -> str:
    """Jobs of one fetch: with many long ones, one process would still work when the other has none left."""
    if job_ms < 1:
        return "100"
    return "10" if job_ms <= 20 else "2"


SYSTEMS: Final = (PgQueuer(),)
