"""Dispatch: jobs become durable, all of a batch or none.

A command carries its job's id, so sending it again finds the job and answers the same receipt.
"""

from collections.abc import Sequence
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.contracts.dispatching import Command, Receipt, ReceiptDisposition
from runwick.contracts.errors import StoreError
from runwick.contracts.identity import id_text
from runwick.contracts.stores import Act
from runwick.stores.sqlite.interned import Interned, Naming
from runwick.stores.sqlite.leased import json_list
from runwick.stores.steps import Step, Steps

PROFILE: Final = "sqlite.wal-full"
"""What a receipt of this store confirms: the commit is in the write-ahead log and the log is on the disk."""


def dispatch(interned: Interned, commands: Sequence[Command], clock: Clock) -> Act[list[Receipt]]:
    """Create these jobs, all or none; receipts in input order."""
    return Act("dispatch", lambda: _dispatch(interned, commands, clock))


def _dispatch(interned: Interned, commands: Sequence[Command], clock: Clock) -> Steps[list[Receipt]]:
    ((first,),) = yield Step("next_position")
    now_ms = clock.now_ms()
    naming = Naming(interned)
    jobs: list[tuple[object, ...]] = []
    due: list[int] = []
    for position, command in enumerate(commands, first):
        application = yield from naming.number(interned.applications, command.application)
        lane = yield from naming.number(interned.lanes, (application, command.lane))
        kind = yield from naming.number(interned.kinds, (application, command.kind))
        policy = yield from naming.number(interned.policies, command.policy)
        jobs.append(
            (
                position,
                command.job_id,
                application,
                lane,
                kind,
                policy,
                command.operation_id,
                now_ms,
                command.expiry_ms(now_ms),
                command.tenant,
                command.traceparent,
                command.tracestate,
                command.metadata,
                len(command.payload),
                command.payload,
            )
        )
        due.append(command.due_at_ms(now_ms))
    created = yield Step("dispatch_job", jobs, many=True)
    if created < len(jobs):
        yield from _check_resent(commands)
    yield Step("dispatch_hot", (first, json_list(due)))
    return [Receipt(c.job_id, c.operation_id, ReceiptDisposition.CREATED, PROFILE) for c in commands]


def _check_resent(commands: Sequence[Command]) -> Steps[None]:
    """Some jobs were there before: sent again, they must come from the same operations."""
    for command in commands:
        ((operation_id,),) = yield Step("dispatched", (command.job_id,))
        if operation_id != command.operation_id:
            raise StoreError(
                "operation_conflict",
                f"job {id_text(command.job_id)} was created by operation {id_text(operation_id)}, this is operation "
                f"{id_text(command.operation_id)}; nothing was written, dispatch it as a new job",
            )
