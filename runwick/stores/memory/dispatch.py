"""Dispatch: jobs are kept, all of a batch or none.

What was applied before is answered again, whatever its deadline and its application's mode have become.
"""

from collections.abc import Sequence
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.contracts.dispatching import Command, Receipt, ReceiptDisposition
from runwick.contracts.history import EventKind
from runwick.contracts.identity import job_of_operation
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.memory.rows import JobRow
from runwick.stores.memory.tables import Tables, act

PROFILE: Final = "memory"
"""What a receipt confirms here: the job lives as long as the process."""


def dispatch(tables: Tables, commands: Sequence[Command], clock: Clock) -> Act[list[Receipt]]:
    """Create these jobs, all or none; receipts in input order."""
    return act("dispatch", lambda: _dispatch(tables, commands, clock.now_ms()))


def _dispatch(tables: Tables, commands: Sequence[Command], now_ms: int) -> list[Receipt]:
    _check(tables, commands, now_ms)
    for command in commands:
        if command.job_id in tables.jobs_by_id:
            continue  # sent again
        tables.know(command.application)
        expires_at_ms = command.expiry_ms(now_ms)
        row = JobRow(
            job=len(tables.rows) + 1,
            command=command,
            created_at_ms=now_ms,
            due_at_ms=command.due_at_ms(now_ms),
            expires_at_ms=expires_at_ms,
            lives_ms=None if expires_at_ms is None else expires_at_ms - now_ms,
        )
        tables.rows[row.job] = row
        tables.jobs_by_id[command.job_id] = row.job
        tables.tell(row, EventKind.DISPATCHED, now_ms)
        tables.wait(row, JobState.PENDING)
    return [_receipt(command.job_id, command.operation_id) for command in commands]


def _check(tables: Tables, commands: Sequence[Command], now_ms: int) -> None:
    """Refuse what may not be applied now, unless it was before. What was sent before, or twice in this batch, must come
    from the same operation."""
    operations = {command.job_id: command.operation_id for command in reversed(commands)}
    for command in commands:
        if command.store_id not in (None, tables.store_id):
            raise refusals.identity_mismatch(command.store_id, tables.store_id)
        job = tables.jobs_by_id.get(command.job_id)
        created_by = operations[command.job_id] if job is None else tables.rows[job].command.operation_id
        if created_by != command.operation_id:
            raise refusals.operation_conflict(command, created_by)
        refusal = tables.refusal("dispatch", command.application) or refusals.too_late(command, now_ms)
        if job is None and refusal is not None:
            raise refusal


def resolve(tables: Tables, application: str, operation_id: bytes) -> Act[Receipt | None]:
    """The receipt of an operation that was applied; None when it was not, so far."""
    return act("resolve", lambda: _resolve(tables, application, operation_id), reads_only=True)


def _resolve(tables: Tables, application: str, operation_id: bytes) -> Receipt | None:
    job = tables.jobs_by_id.get(job_of_operation(operation_id))
    if job is None:
        return None
    command = tables.rows[job].command
    if (command.application, command.operation_id) != (application, operation_id):
        return None
    return _receipt(command.job_id, operation_id)


def _receipt(job_id: bytes, operation_id: bytes) -> Receipt:
    return Receipt(job_id, operation_id, ReceiptDisposition.CREATED, PROFILE)
