"""By hand: a dispatch with a note for the audit trail is kept as a command, in the same act as its job."""

from runwick.contracts.dispatching import Command, Receipt, ReceiptDisposition
from runwick.contracts.revealing import AuditNote
from runwick.stores.by_hand import DISPATCH, fingerprint
from runwick.stores.controls import command_conflict
from runwick.stores.memory import trail
from runwick.stores.memory.rows import Kept
from runwick.stores.memory.tables import Tables


def dispatched_before(tables: Tables, command: Command, note: AuditNote) -> Receipt | None:
    """The first receipt of this command; None when its id is free, as far as commands are concerned.

    Raises:
        StoreError: its id was used for something else (code ``operation_conflict``).
    """
    kept = tables.commands.get((command.application, command.operation_id))
    if kept is None:
        return None
    if kept.fingerprint != fingerprint(command, note):
        raise command_conflict(command)
    assert isinstance(kept.reply, Receipt)
    return kept.reply


def keep(tables: Tables, command: Command, note: AuditNote, receipt: Receipt, now_ms: int) -> None:
    """Keep what was answered, and write down the job that was created."""
    tables.commands[command.application, command.operation_id] = Kept(fingerprint(command, note), receipt)
    if receipt.disposition is ReceiptDisposition.CREATED:
        row = tables.rows[tables.jobs_by_id[receipt.job]]
        trail.write(
            tables,
            row,
            note.actor,
            DISPATCH,
            now_ms,
            command_id=command.operation_id,
            reason=note.reason,
            after=row.state.value,
        )
