"""By hand: a dispatch with a note for the audit trail is kept as a command, in the transaction of its job."""

from runwick.contracts.dispatching import Command, Receipt, ReceiptDisposition
from runwick.contracts.revealing import AuditNote
from runwick.contracts.states import JobState
from runwick.stores.by_hand import DISPATCH, fingerprint, first_receipt, reply_of
from runwick.stores.sqlite import receipts
from runwick.stores.sqlite.interned import Interned, Naming
from runwick.stores.sqlite.trail import audit_row
from runwick.stores.steps import Step, Steps


def dispatched_before(interned: Interned, command: Command, note: AuditNote) -> Steps[Receipt | None]:
    """The first receipt of this command; None when its id is free, as far as commands are concerned.

    Raises:
        StoreError: its id was used for something else (code ``operation_conflict``).
    """
    application = interned.applications.ids.get(command.application)
    if application is not None:
        for kept_fingerprint, reply in (yield Step("command_known", (application, command.operation_id))):
            return first_receipt(command, note, kept_fingerprint, reply, receipts.PROFILE)
    return None


def keep(naming: Naming, command: Command, note: AuditNote, receipt: Receipt, job: int, now_ms: int) -> Steps[None]:
    """Keep what was answered, and write down the job that was created.

    Args:
        job: its number, if one was.
    """
    application = yield from naming.number(naming.interned.applications, command.application)
    if receipt.disposition is ReceiptDisposition.CREATED:
        row = audit_row(
            job + 1,
            application,
            note.actor,
            DISPATCH,
            now_ms,
            command_id=command.operation_id,
            reason=note.reason,
            job=job,
            generation=1,
            after=JobState.PENDING.value,
        )
        yield Step("audit_add", row)
    kept = (application, command.operation_id, fingerprint(command, note), reply_of(receipt), now_ms)
    yield Step("command_keep", kept)
