"""Dramatiq on Redis: one ``dramatiq`` with two processes of one thread each."""

from collections.abc import Sequence
from typing import Final

import redis

from scripts.peers.system import WORKERS, Place, System

_LOOK_MS: Final = 10
"""How long its consumers wait at most before they ask Redis again."""


class Dramatiq(System):
    name = "dramatiq"
    title = "Dramatiq"
    package = "dramatiq"
    side = "dramatiq"
    store = "redis"
    promise = "at least once"
    settings = (
        "one `dramatiq` with two processes of one thread each, which was faster than its eight; "
        "`dramatiq_queue_prefetch` 64 for jobs that do nothing, 16 up to 20 ms and 4 above; `dramatiq_worker_timeout` "
        "10 ms, since its consumers poll; a worker without a word for 10 s is gone (`heartbeat_timeout`, by default "
        "60 s), looked for by one command in a hundred (`maintenance_chance`, by default one in a thousand); its usual "
        "middleware; hiredis"
    )
    noop_jobs = 15_000

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        names = [f"dramatiq_queue_prefetch={_ahead(place.job_ms)}", f"dramatiq_worker_timeout={_LOOK_MS}"]
        command = [self.program("dramatiq"), "scripts.peers.sides.dramatiq", "--processes", str(WORKERS)]
        return [["env", *names, *command, "--threads", "1"]]

    def left(self, place: Place) -> int | None:
        with redis.Redis.from_url(place.url) as client:
            return int(client.hlen("dramatiq:default.msgs")) + int(client.hlen("dramatiq:default.DQ.msgs"))


def _ahead(job_ms: float) -> int:
    """Messages of each process, with the one at work."""
    if job_ms < 1:
        return 64
    return 16 if job_ms <= 20 else 4


SYSTEMS: Final = (Dramatiq(),)
