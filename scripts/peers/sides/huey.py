"""Huey's jobs, in the SQLite file that ``SQLITE_PATH`` names or else in the Redis that ``REDIS_URL`` names.

``huey_consumer scripts.peers.sides.huey.huey`` serves them.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Final

from huey import RedisHuey, SqliteHuey  # type: ignore[import-not-found, unused-ignore]

from scripts.peers.sides import producing, work

if "SQLITE_PATH" in os.environ:
    huey = SqliteHuey("jobs", filename=os.environ["SQLITE_PATH"], fsync=True, results=False)
else:
    huey = RedisHuey("jobs", url=os.environ["REDIS_URL"], results=False)
_tasks: Final = {
    kind: huey.task(name=kind, timeout=work.LIMIT_S if kind in work.LIMITED else None)(body)
    for kind, body in work.KINDS.items()
}


@contextlib.contextmanager
def _opened() -> Iterator[producing.Producer]:
    def one(kind: str, value: Any) -> None:
        _tasks[kind](value)

    huey.pending_count()
    yield producing.Producer(one, None)
    huey.storage.close()


if __name__ == "__main__":
    producing.main(_opened)
