"""Dispatch: jobs are kept, all of a batch or none."""

from collections.abc import Sequence
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.contracts.dispatching import Command, Receipt, ReceiptDisposition
from runwick.contracts.errors import StoreError
from runwick.contracts.identity import id_text
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores.memory.tables import JobRow, Tables, act

PROFILE: Final = "memory"
"""What a receipt confirms here: the job lives as long as the process."""


def dispatch(tables: Tables, commands: Sequence[Command], clock: Clock) -> Act[list[Receipt]]:
    """Create these jobs, all or none; receipts in input order."""
    return act("dispatch", lambda: _dispatch(tables, commands, clock.now_ms()))


def _dispatch(tables: Tables, commands: Sequence[Command], now_ms: int) -> list[Receipt]:
    _check_resent(tables, commands)
    for command in commands:
        if command.job_id in tables.jobs_by_id:
            continue  # sent again
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
        tables.wait(row, JobState.PENDING)
    return [Receipt(c.job_id, c.operation_id, ReceiptDisposition.CREATED, PROFILE) for c in commands]


def _check_resent(tables: Tables, commands: Sequence[Command]) -> None:
    """Commands that were sent before, or twice in this batch, must come from the same operations."""
    operations = {command.job_id: command.operation_id for command in reversed(commands)}
    for command in commands:
        job = tables.jobs_by_id.get(command.job_id)
        created_by = operations[command.job_id] if job is None else tables.rows[job].command.operation_id
        if created_by != command.operation_id:
            raise StoreError(
                "operation_conflict",
                f"job {id_text(command.job_id)} was created by operation {id_text(created_by)}, this is operation "
                f"{id_text(command.operation_id)}; nothing was written, dispatch it as a new job",
            )
