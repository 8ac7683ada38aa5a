"""Celery on Redis: one ``celery worker`` with two prefork processes."""

from collections.abc import Sequence
from typing import Final

import redis

from scripts.peers.system import WORKERS, Place, System

_QUIET: Final = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING")


class Celery(System):
    name = "celery"
    title = "Celery"
    package = "celery"
    side = "celery"
    store = "redis"
    promise = "at least once"
    settings = (
        "one `celery worker`, prefork with two processes, `task_acks_late` and `task_reject_on_worker_lost` (neither "
        "is the default), no results, no gossip, mingle or events; fetching 64 messages per process ahead for jobs "
        "under 10 ms, 4 up to 100 ms and one above; visibility timeout 10 s (default an hour), looked at every second; "
        "hard time limits; hiredis; in bulk by kombu's `Producer.batch`"
    )
    noop_jobs = 4_000

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        command = [self.program("celery"), "-A", "scripts.peers.sides.celery", "worker", *_QUIET]
        command += ["--pool", "prefork", "--concurrency", str(WORKERS), "--prefetch-multiplier", _ahead(place.job_ms)]
        return [command]

    def left(self, place: Place) -> int | None:
        with redis.Redis.from_url(place.url) as client:
            return int(client.llen("celery")) + int(client.zcard("unacked_index"))


def _ahead(job_ms: float) -> str:
    """Messages for each process beside the one at work: many short ones, no long ones."""
    if job_ms < 10:
        return "64"
    return "4" if job_ms < 100 else "1"


SYSTEMS: Final = (Celery(),)
