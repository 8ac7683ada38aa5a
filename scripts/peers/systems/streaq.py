"""streaQ on Redis: one ``streaq run`` with two processes."""

from collections.abc import Sequence
from typing import Final

import redis

from scripts.peers.system import WORKERS, Place, System


class Streaq(System):
    name = "streaq"
    title = "streaQ"
    package = "streaq"
    side = "streaq"
    store = "redis"
    promise = "at least once"
    settings = (
        "one `streaq run` with two processes, uvloop, no results, no log; jobs that do nothing as coroutines, those "
        "that compute in threads; 16 in hand for jobs that do nothing (its default), four up to 20 ms, one above, and "
        "as many fetched ahead; a task whose worker is without a word for 10 s is given to another (default 60 s); in "
        "bulk by `enqueue_many`"
    )
    noop_jobs = 6_000

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        command = [self.program("streaq"), "run", "scripts.peers.sides.streaq:worker", "--workers", str(WORKERS)]
        return [["env", f"CONCURRENCY={_in_hand(place.job_ms)}", *command]]

    def left(self, place: Place) -> int | None:
        with redis.Redis.from_url(place.url) as client:
            return int(client.xlen("streaq:jobs:queues:normal")) + int(
                client.zcard("streaq:jobs:queues:delayed:normal")
            )


def _in_hand(job_ms: float) -> int:
    if job_ms < 1:
        return 16
    return 4 if job_ms <= 20 else 1


SYSTEMS: Final = (Streaq(),)
