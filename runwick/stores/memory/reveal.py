"""Reveal: what is private is shown to somebody, and the audit trail says so.

What was shown is never kept with the command: sent again it reads again, and writes no second row.
"""

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.revealing import RevealCommand, Revealed, Secret
from runwick.contracts.stores import Act, AttemptRecord
from runwick.stores.controls import command_conflict
from runwick.stores.memory import trail
from runwick.stores.memory.rows import JobRow, Kept
from runwick.stores.memory.tables import Tables, act
from runwick.stores.revealing import audit_action, audit_target, fingerprint


def reveal(tables: Tables, command: RevealCommand, clock: Clock) -> Act[Revealed | None]:
    """Show it; None when there is no such job."""
    return act("reveal", lambda: _reveal(tables, command, clock.now_ms()))


def _reveal(tables: Tables, command: RevealCommand, now_ms: int) -> Revealed | None:
    key = command.application, command.command_id
    kept = tables.commands.get(key)
    if kept is not None and kept.fingerprint != fingerprint(command):
        raise command_conflict(command)
    if kept is None:
        tables.admit("reveal", command.application)
    row = tables.find(command.application, command.job_id)
    if row is None:
        return None
    attempt = next((record for record in row.history if record.attempt_id == command.attempt_id), None)
    if kept is None:
        tables.commands[key] = Kept(fingerprint(command), None)
        trail.write(
            tables,
            row,
            command.actor,
            audit_action(command),
            now_ms,
            command_id=command.command_id,
            reason=command.reason,
            generation=None if attempt is None else attempt.generation,
            target=audit_target(command),
        )
    return msgspec.structs.replace(_read(tables, row, attempt, command), replayed=kept is not None)


def _read(tables: Tables, row: JobRow, attempt: AttemptRecord | None, command: RevealCommand) -> Revealed:
    """What there is of it.

    Args:
        attempt: the one asked for, if it is closed and the job's.
    """
    match command.what:
        case Secret.PAYLOAD:
            return Revealed(json=row.command.payload)
        case Secret.RESULT:
            return Revealed(json=row.result)
        case Secret.ERROR:
            return Revealed(error=None if attempt is None else attempt.error)
        case Secret.BLACK_BOX:
            return Revealed(black_box=None if attempt is None else attempt.black_box)
        case Secret.STACK:
            look = None if command.attempt_id is None else tables.looks.get(command.attempt_id)
            return Revealed(text=None if look is None or look.job != row.job else look.text)
