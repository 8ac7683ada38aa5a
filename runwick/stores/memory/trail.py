"""The trail: one audit row for one thing that an operator did to a job, and the event that tells of it."""

from runwick.contracts.controls import ManagementActor
from runwick.contracts.history import AuditRecord, EventKind
from runwick.stores.memory.rows import JobRow
from runwick.stores.memory.tables import Tables


def write(
    tables: Tables,
    row: JobRow,
    actor: ManagementActor,
    action: str,
    now_ms: int,
    *,
    command_id: bytes,
    reason: str | None,
    generation: int | None = None,
    before: str | None = None,
    after: str | None = None,
    target: str | None = None,
) -> None:
    """Write it down.

    Args:
        generation: which one it was about, where that is not the job's present one.
        target: what else than the job it was about.
    """
    record = AuditRecord(
        cursor=str(len(tables.audit) + 1),
        at_ms=now_ms,
        actor=actor.subject,
        actor_display=actor.display,
        actor_scheme=actor.scheme,
        action=action,
        job_id=row.command.job_id,
        generation=row.generation if generation is None else generation,
        before=before,
        after=after,
        reason=reason,
        command_id=command_id,
        target=target,
    )
    tables.audit.append((row.command.application, record))
    tables.tell(row, EventKind.CONTROLLED, now_ms, generation=generation, state=action, command_id=command_id)
