"""Our own jobs, as everybody writes them; the store is the one in ``RUNWICK_STORE``.

``runwick-supervise scripts.peers.sides.runwick`` serves them.
"""

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from runwick import Job, Runwick, WorkerOptions
from scripts.peers.sides import producing, work

BATCH = 100
"""The most that one call dispatches."""
GRACE = timedelta(milliseconds=500)
"""How long a run over its time limit may take to stop by itself."""

# Another store is only ever named by whoever measures.
rw = Runwick("bench", store="sqlite:///bench.db", worker=WorkerOptions(cancellation_grace=GRACE))


class Nothing(Job):
    value: str


class Counted(Job):
    """Of the kinds that carry an integer."""

    value: int


class Timed(Job):
    """Of the kinds that take so many seconds."""

    value: float


class Spin(Counted):
    pass


class Stamp(Counted):
    pass


class Linger(Counted):
    pass


class PythonLoop(Timed):
    pass


class CCallReleasing(Timed):
    pass


class CCallHolding(Timed):
    pass


RECORDS: dict[str, Callable[[Any], Job]] = {}


def _declare(kind: str, record: type[Job]) -> None:
    body, delay = work.KINDS[kind], timedelta(milliseconds=1)
    settings: dict[str, Any] = {"max_executions": 10, "retry_delay": (delay, delay)}
    if kind in work.LIMITED:
        settings["execution_timeout"] = timedelta(seconds=work.LIMIT_S)

    def handler(job: Any) -> None:
        body(job.value)

    handler.__annotations__["job"] = record
    rw.job(kind, **settings)(record)
    rw.handler(handler)
    RECORDS[kind] = record


_DECLARED: tuple[type[Job], ...] = (Nothing, Spin, Stamp, Linger, PythonLoop, CCallReleasing, CCallHolding)
for _kind, _record in zip(work.KINDS, _DECLARED, strict=True):
    _declare(_kind, _record)


@contextlib.contextmanager
def opened() -> Iterator[producing.Producer]:
    """Connect to dispatch."""

    def one(kind: str, value: Any) -> None:
        rw.dispatch(RECORDS[kind](value))

    def many(kind: str, values: list[Any]) -> None:
        for first in range(0, len(values), BATCH):
            rw.dispatch_many([RECORDS[kind](value) for value in values[first : first + BATCH]])

    rw.check()  # opens the store
    yield producing.Producer(one, many)
    rw.close()


if __name__ == "__main__":
    producing.main(opened)
