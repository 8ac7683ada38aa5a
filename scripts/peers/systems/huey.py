"""Huey on Redis and on SQLite: one ``huey_consumer`` with two worker processes."""

import contextlib
import sqlite3
from collections.abc import Sequence
from typing import ClassVar, Final

import redis

from scripts.peers.system import WORKERS, Place, Store, System

_ALIKE: Final = (
    "one `huey_consumer` with two worker processes, looked after every second (default 10 s), no results, no periodic "
    "tasks; a job leaves the queue when it is taken, and no setting changes that"
)
_LOOK_S: Final = "0.01"


class Huey(System):
    name = "huey"
    title = "Huey"
    package = "huey"
    side = "huey"
    store: ClassVar[Store] = "redis"
    promise = "at most once"
    settings = f"{_ALIKE}; blocking reads; hiredis"
    noop_jobs = 15_000

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        command = [self.program("huey_consumer"), "scripts.peers.sides.huey.huey", "--quiet", "--no-periodic"]
        return [[*command, "--workers", str(WORKERS), "--worker-type", "process", "--health-check-interval", "1"]]

    def left(self, place: Place) -> int | None:
        with redis.Redis.from_url(place.url) as client:
            return int(client.llen("huey.redis.jobs")) + int(client.zcard("huey.schedule.jobs"))


class HueySqlite(Huey):
    name = "huey-sqlite"
    title = "Huey (SQLite)"
    store = "sqlite"
    settings = (
        f"{_ALIKE}; write-ahead log with `fsync=True`, which sets `synchronous` to `FULL`; an empty queue is looked at "
        "every 10 ms (by default every 0.1 s to 10 s)"
    )

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        return [[*command, "--delay", _LOOK_S, "--max-delay", _LOOK_S] for command in super().workers(place)]

    def left(self, place: Place) -> int | None:
        with contextlib.closing(sqlite3.connect(place.url)) as connection:
            ((left,),) = connection.execute("SELECT (SELECT count(*) FROM task) + (SELECT count(*) FROM schedule)")
        return int(left)


SYSTEMS: Final = (Huey(), HueySqlite())
