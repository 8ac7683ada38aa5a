"""The trail: one audit row for one thing that an operator did."""

from runwick.contracts.controls import ManagementActor


def audit_row(
    position: int,
    application: int,
    actor: ManagementActor,
    action: str,
    now_ms: int,
    *,
    command_id: bytes,
    reason: str | None,
    job: int | None = None,
    generation: int | None = None,
    before: str | None = None,
    after: str | None = None,
    target: str | None = None,
) -> tuple[object, ...]:
    """A row of ``audit_add.sql``."""
    return (
        position,
        application,
        actor.subject,
        action,
        before,
        after,
        now_ms,
        actor.display,
        actor.scheme,
        reason,
        command_id,
        job,
        generation,
        target,
    )
