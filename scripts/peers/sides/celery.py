"""Celery's jobs; the broker is the Redis that ``REDIS_URL`` names.

``celery -A scripts.peers.sides.celery worker`` serves them.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Final

from celery import Celery  # type: ignore[import-not-found, unused-ignore]

from scripts.peers.sides import producing, work

VISIBILITY_TIMEOUT_S: Final = 10
"""Longer than any job here, as its documentation demands: a job that takes longer is given out again."""

app = Celery("jobs", broker=os.environ["REDIS_URL"])
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_enable_remote_control=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "visibility_timeout": VISIBILITY_TIMEOUT_S,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    },
)
_tasks: Final = {
    kind: app.task(body, name=kind, time_limit=work.LIMIT_S if kind in work.LIMITED else None)
    for kind, body in work.KINDS.items()
}


@contextlib.contextmanager
def _opened() -> Iterator[producing.Producer]:
    def one(kind: str, value: Any) -> None:
        _tasks[kind].delay(value)

    def many(kind: str, values: list[Any]) -> None:
        with app.producer_or_acquire() as producer, producer.batch(max_size=len(values)):
            for value in values:
                _tasks[kind].apply_async((value,), producer=producer)

    with app.producer_or_acquire() as producer:
        producer.connection.ensure_connection()
    yield producing.Producer(one, many)
    app.close()


if __name__ == "__main__":
    producing.main(_opened)
