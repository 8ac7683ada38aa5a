"""TaskIQ on Redis: one ``taskiq worker`` with two processes."""

from collections.abc import Sequence
from typing import Final

import redis

from scripts.peers.system import WORKERS, Place, System


class TaskIq(System):
    name = "taskiq"
    title = "TaskIQ"
    package = "taskiq"
    side = "taskiq"
    store = "redis"
    promise = "at least once"
    settings = (
        "`taskiq-redis`, its stream broker (the one with acknowledgements), one `taskiq worker` with two processes, "
        "uvloop, no results, acknowledged when executed; jobs that do nothing as coroutines, 100 at once and as many "
        "read at once; those that compute in one thread of each process, two in hand and ten read at once up to 20 ms, "
        "above one; a message may be claimed by another worker after 10 s (default 600 s), which is only looked at "
        "when a new one has come; hiredis"
    )
    noop_jobs = 15_000

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        in_hand, ahead = _in_hand_and_ahead(place.job_ms)
        command = [self.program("taskiq"), "worker", "scripts.peers.sides.taskiq:broker", "--workers", str(WORKERS)]
        command += ["--ack-type", "when_executed", "--log-level", "WARNING", "--max-threadpool-threads", "1"]
        return [["env", f"PREFETCH={ahead}", *command, "--max-async-tasks", str(in_hand)]]

    def left(self, place: Place) -> int | None:
        with redis.Redis.from_url(place.url) as client:
            (group,) = client.xinfo_groups("jobs")
        return int(group["pending"]) + int(group["lag"])


def _in_hand_and_ahead(job_ms: float) -> tuple[int, int]:
    """How many jobs a process has in hand, and how many messages it reads at once."""
    if job_ms < 1:
        return 100, 100
    return (2, 10) if job_ms <= 20 else (1, 1)


SYSTEMS: Final = (TaskIq(),)
