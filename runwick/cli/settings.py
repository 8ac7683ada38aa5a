"""``runwick settings``: the store, and the options of the process that answers, with where each comes from."""

from typing import TYPE_CHECKING

import click

from runwick.cli.commands import DeskCommand

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.management.bodies import SettingsBody


@click.command(cls=DeskCommand, permission="Settings.Read", result="SettingsBody")
async def command(operation: "Operation") -> "Answer":
    """Show the store and the options."""
    from runwick.cli.answers import Answer

    found = await operation.desk.settings()
    return Answer(body=found, text=lambda: _text(found))


def _text(found: "SettingsBody") -> str:
    from runwick.cli.tables import lay_out_table, terminal_text

    lines = [
        f"application: {found.application}",
        f"store: {terminal_text(found.store)}",
        f"store id: {found.store_id or 'unknown'}",
        f"revision: {found.revision or 'unknown'}",
        f"release: {found.version}",
        f"admission: {found.admission}",
        f"capabilities: {', '.join(found.capabilities) or 'none'}",
        *(f"note: {terminal_text(note)}" for note in found.notes),
    ]
    rows = [[each.name, each.value, each.source] for each in found.settings]
    if rows:
        lines.append(lay_out_table(["option", "value", "from"], rows))
    return "\n".join(lines)
