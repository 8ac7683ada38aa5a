"""Workers: who works here and what their executors do, as they told it, and the stacks that were asked for."""

from typing import Any

from runwick.contracts.activity import StackAnswer, WorkerRecord
from runwick.contracts.stores import Act
from runwick.stores.activities import worker_record
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.lease import PRESENCE_KEPT_MS
from runwick.stores.steps import Step, Steps


def workers(bound: Bound, application: str) -> Act[list[WorkerRecord]]:
    """The workers seen within 24 hours, the latest start first."""
    return Act("workers", lambda: _workers(bound, application), reads_only=True)


def _workers(bound: Bound, application: str) -> Steps[list[WorkerRecord]]:
    seen_within = packed.number(PRESENCE_KEPT_MS)
    rows: list[tuple[Any, ...]] = yield Step("workers", (*bound.reading(), application, seen_within))
    return [worker_record(application, *row) for row in rows]


def stack(bound: Bound, application: str, attempt_id: bytes) -> Act[StackAnswer | None]:
    """The stack that was asked for, once its worker has answered."""
    return Act("stack", lambda: _stack(bound, application, attempt_id), reads_only=True)


def _stack(bound: Bound, application: str, attempt_id: bytes) -> Steps[StackAnswer | None]:
    rows = yield Step("stack", (*bound.reading(), application, packed.Id(attempt_id)))
    return StackAnswer(attempt_id, rows[0][0]) if rows else None
