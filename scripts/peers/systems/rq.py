"""RQ on Redis: two processes of ``rq worker``."""

from collections.abc import Sequence
from typing import Final

import redis

from scripts.peers.system import WORKERS, Place, System

_SIMPLE_MS: Final = 10
"""Below this its documentation knows a use for the worker that does not fork."""
_LOOK_S: Final = 5


class Rq(System):
    name = "rq"
    title = "RQ"
    package = "rq"
    side = "rq"
    store = "redis"
    promise = "at least once"
    settings = (
        "two `rq worker`, for jobs under 10 ms `SimpleWorker`, which runs them in its own process (its documentation "
        "allows that for single-digit milliseconds), else `Worker`, which forks for each job and has loaded the "
        "handlers before; every job with `Retry(max=3)` (without it one whose process dies is marked as failed); "
        "nothing kept of those that succeeded; maintenance and heartbeats every 5 s (by default 600 s and 30 s); "
        "hiredis; in bulk by `enqueue_many`"
    )
    noop_jobs = 2_000

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        worker = "rq.SimpleWorker" if place.job_ms < _SIMPLE_MS else "rq.Worker"
        command = [self.program("rq"), "worker", "--config", "scripts.peers.sides.rq", "--quiet"]
        command += ["--worker-class", worker, "--maintenance-interval", str(_LOOK_S)]
        return [[*command, "--job-monitoring-interval", str(_LOOK_S)]] * WORKERS

    def left(self, place: Place) -> int | None:
        with redis.Redis.from_url(place.url) as client:
            return int(client.llen("rq:queue:jobs")) + int(client.zcard("rq:wip:jobs"))


SYSTEMS: Final = (Rq(),)
