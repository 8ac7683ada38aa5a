"""A small application whose jobs are dispatched and counted, and never run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from runwick import Job, Prepared, PreparedBatch, Runwick
from runwick.contracts.attempts import Lane
from runwick.contracts.states import Priority
from runwick.runtime import crossings


class Report(Job):
    title: str


class Lines(Job):
    lines: list[str]


def application(store: str, **options: Any) -> Runwick:
    """The application ``shop`` on that store."""
    app = Runwick("shop", store=store, **options)
    app.job("reports.build", queue="reports")(Report)
    app.job("lines.keep")(Lines)
    return app


def stored(rw: Runwick) -> int:
    """How many jobs are in the store."""
    lanes = [Lane(queue, priority) for queue in rw.catalog.queues for priority in Priority]
    outlook = rw.store.run(rw.store.outlook("shop", lanes, frozenset(rw.catalog.jobs)))
    return outlook.due + outlook.later + outlook.leased + outlook.undecodable


def job_ids(prepared: Prepared | PreparedBatch) -> list[str]:
    """The jobs that a request has or will have made."""
    if isinstance(prepared, Prepared):
        return [prepared.job_id]
    return [Prepared(command).job_id for command in prepared.commands]


ANSWERED = {"sqlite": "sqlite.committed", "postgresql": "postgres.answered", "redis": "redis.answered"}
"""Where a store has applied a call and nobody knows it yet, by the scheme of its URL. PostgreSQL comes there with every
statement, and a first dispatch has several."""


@contextmanager
def when_applied(rw: Runwick, what: Callable[[], object]) -> Iterator[None]:
    """Have this happen, for the length of the block, whenever a call has been applied and not been answered yet."""

    def there() -> None:
        what()

    remove = crossings.on(ANSWERED[rw.store_url.partition(":")[0]], there)
    try:
        yield
    finally:
        remove()
