"""Dispatch: jobs become durable, all of a batch or none.

An operation's id gives its job's id, so the job's row is the receipt: sending a command again finds the row and answers
what it answered first, whatever its deadline and its application's mode have become.
"""

from collections.abc import Sequence
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.contracts.dispatching import Command, Receipt, ReceiptDisposition
from runwick.contracts.identity import job_of_operation
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned, Naming
from runwick.stores.sqlite.leased import json_list
from runwick.stores.steps import Step, Steps

PROFILE: Final = "sqlite.wal-full"
"""What a receipt of this store confirms: the commit is in the write-ahead log and the log is on the disk."""


def dispatch(gate: Gate, interned: Interned, commands: Sequence[Command], clock: Clock) -> Act[list[Receipt]]:
    """Create these jobs, all or none; receipts in input order."""
    return Act("dispatch", lambda: _dispatch(gate, interned, commands, clock))


def _dispatch(gate: Gate, interned: Interned, commands: Sequence[Command], clock: Clock) -> Steps[list[Receipt]]:
    ((first,),) = yield Step("next_position")
    now_ms = clock.now_ms()
    yield from _check(gate, commands, now_ms)
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
        for command in commands:
            yield from _was_applied(command)
    yield Step("dispatch_hot", (first, json_list(due)))
    return [_receipt(command.job_id, command.operation_id) for command in commands]


def _check(gate: Gate, commands: Sequence[Command], now_ms: int) -> Steps[None]:
    """Refuse what may not be applied now. Only what is refused is looked up: it may have been applied before."""
    for command in commands:
        gate.check_meant(command)
        refusal = gate.refusal("dispatch", command.application) or refusals.too_late(command, now_ms)
        if refusal is not None and not (yield from _was_applied(command)):
            raise refusal


def _was_applied(command: Command) -> Steps[bool]:
    """Whether the command's job is there.

    Raises:
        StoreError: it is another operation's (code ``operation_conflict``).
    """
    rows = yield Step("dispatched", (command.job_id,))
    for (operation_id,) in rows:
        if operation_id != command.operation_id:
            raise refusals.operation_conflict(command, operation_id)
    return bool(rows)


def resolve(application: str, operation_id: bytes) -> Act[Receipt | None]:
    """The receipt of an operation that was applied; None when it was not, so far."""
    return Act("resolve", lambda: _resolve(application, operation_id), reads_only=True)


def _resolve(application: str, operation_id: bytes) -> Steps[Receipt | None]:
    job_id = job_of_operation(operation_id)
    rows = yield Step("resolved", (application, job_id, operation_id))
    return _receipt(job_id, operation_id) if rows else None


def _receipt(job_id: bytes, operation_id: bytes) -> Receipt:
    return Receipt(job_id, operation_id, ReceiptDisposition.CREATED, PROFILE)
