"""By hand: a dispatch with a note for the audit trail is kept as a command, by the statement that writes its job."""

from runwick.contracts.dispatching import Command, Receipt
from runwick.contracts.errors import ItemFailure
from runwick.contracts.revealing import AuditNote
from runwick.stores.by_hand import fingerprint, first_receipt, reply_of
from runwick.stores.controls import command_conflict
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.steps import Preparation, Steps


def dispatched_before(bound: Bound, application: int, command: Command, note: AuditNote) -> Steps[Receipt | None]:
    """The first receipt of this command; None when its id is free, as far as commands that anybody can see go.

    Raises:
        StoreError: its id was used for something else (code ``operation_conflict``).
    """
    parameters = (*bound.gate(), packed.number(application), packed.Id(command.operation_id))
    for kept_fingerprint, reply in (yield Preparation("command_known", parameters)):
        return first_receipt(command, note, kept_fingerprint, reply, bound.profile)
    return None


def applied_meanwhile(bound: Bound, application: int, command: Command, note: AuditNote) -> Steps[Receipt]:
    """The receipt of this command, which was not there when it was asked for, and whose operation was applied since.

    Raises:
        StoreError: the operation was applied otherwise than by hand (code ``operation_conflict``).
    """
    receipt = yield from dispatched_before(bound, application, command, note)
    if receipt is None:
        raise command_conflict(command)
    return receipt


def kept_columns(command: Command, note: AuditNote | None, answer: Receipt | ItemFailure) -> tuple[packed.Packed, ...]:
    """What the audit trail is told, and what is kept; empty columns where nobody dispatches by hand."""
    kept = [(note, answer)] if note is not None and isinstance(answer, Receipt) else []
    return (
        packed.texts([note.actor.subject for note, _ in kept]),
        packed.texts([note.actor.display for note, _ in kept]),
        packed.texts([note.actor.scheme for note, _ in kept]),
        packed.texts([note.reason for note, _ in kept]),
        packed.ids([command.operation_id for _ in kept]),
        packed.blobs([fingerprint(command, note) for note, _ in kept]),
        packed.texts([reply_of(receipt).decode() for _, receipt in kept]),
    )
