"""SAQ on Redis: one ``saq`` with two processes."""

from collections.abc import Sequence
from typing import Final

import redis

from scripts.peers.system import WORKERS, Place, System

_SWEEP_S: Final = 60
_SWEEP_OFTEN_S: Final = 5
_LONG_MS: Final = 500
"""The jobs of kills and limits take as long and longer."""


class Saq(System):
    name = "saq"
    title = "SAQ"
    package = "saq"
    side = "saq"
    store = "redis"
    promise = "at least once"
    settings = (
        "one `saq` with two processes, every job with three attempts (by default one) and its usual timeout of 10 s, "
        "after which one that is lost is given out again; nothing kept of those that ended; jobs that do nothing as "
        "coroutines, those that compute in threads; ten in hand for jobs that do nothing, four up to 20 ms, one above; "
        "lost jobs are looked for every 60 s as by default, but every 5 s in the tests of kills and limits; hiredis"
    )
    noop_jobs = 8_000

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        names = [
            f"CONCURRENCY={_in_hand(place.job_ms)}",
            f"SWEEP_S={_SWEEP_OFTEN_S if place.job_ms >= _LONG_MS else _SWEEP_S}",
        ]
        command = [self.program("saq"), "scripts.peers.sides.saq.settings", "--workers", str(WORKERS)]
        return [["env", *names, *command]]

    def left(self, place: Place) -> int | None:
        """Keys of jobs, which are gone with them: a lost job is for some seconds in none of its lists."""
        with redis.Redis.from_url(place.url) as client:
            return sum(1 for _ in client.scan_iter("saq:job:jobs:*", count=1_000))


def _in_hand(job_ms: float) -> int:
    if job_ms < 1:
        return 10
    return 4 if job_ms <= 20 else 1


SYSTEMS: Final = (Saq(),)
