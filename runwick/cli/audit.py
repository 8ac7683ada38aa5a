"""``runwick audit``: what operators did, and why they said they did it."""

from typing import TYPE_CHECKING

import click

from runwick.cli.commands import DeskCommand, Topic
from runwick.cli.moments import MOMENT
from runwick.cli.pages import more_text, next_page, page_options

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.management.bodies import AuditListBody


@click.group(cls=Topic)
def command() -> None:
    """List what operators did."""


@command.command("list", cls=DeskCommand, permission="Audit.Read", result="AuditListBody")
@click.option("--action", metavar="ACTION", help="cancel, reveal_payload…")
@click.option("--actor", metavar="SUBJECT", help="Who.")
@click.option("--job", metavar="ID", help="To which job.")
@click.option("--target", metavar="TARGET", help="To what else: 'queue default'.")
@click.option("--target-kind", type=click.Choice(["queue", "job-type", "resource"]), help="To anything of this kind.")
@click.option("--from", "from_ms", type=MOMENT, metavar="MOMENT", help="Then or later.")
@click.option("--until", "until_ms", type=MOMENT, metavar="MOMENT", help="Before.")
@page_options
async def list_(
    operation: "Operation",
    action: str | None,
    actor: str | None,
    job: str | None,
    target: str | None,
    target_kind: str | None,
    from_ms: int | None,
    until_ms: int | None,
    cursor: str | None,
    limit: int,
) -> "Answer":
    """List the audit trail, the latest first. All filters must fit."""
    from runwick.cli.answers import Answer
    from runwick.contracts.identity import id_bytes
    from runwick.contracts.listing import AuditFilter

    if target is not None and target_kind is not None:
        raise click.UsageError("--target names one thing, --target-kind all of a kind; give one of them.")
    chosen = AuditFilter(
        action=action,
        actor=actor,
        job_id=None if job is None else id_bytes(job),
        target=target or target_kind,
        at_from_ms=from_ms,
        at_until_ms=until_ms,
    )
    page = await operation.desk.audit(chosen, cursor, limit)
    return Answer(
        body=page,
        text=lambda: _table(page) + more_text(page.cursor),
        next_actions=next_page(operation, page.cursor),
    )


def _table(page: "AuditListBody") -> str:
    from runwick.cli.job_text import moment_text
    from runwick.cli.tables import lay_out_table

    if not page.records:
        return "no such records" if page.cursor is None else "none here; there may be more"
    rows = [
        [
            moment_text(each.at),
            each.actor,
            each.actor_scheme,
            each.action,
            each.job_id or each.target,
            None if each.after is None else " → ".join(filter(None, (each.before, each.after))),
            each.reason,
        ]
        for each in page.records
    ]
    return lay_out_table(["at", "who", "by", "action", "target", "change", "reason"], rows, indent="")
