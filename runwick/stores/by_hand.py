"""What every store decides alike about a job that somebody dispatches by hand. Its operation id is a command id, so it
is kept as every command is: one id, one request, one answer.
"""

import hashlib
from typing import Final

import msgspec

from runwick.contracts.dispatching import Command, DuplicateMatch, Receipt, ReceiptDisposition
from runwick.contracts.identity import id_bytes
from runwick.contracts.revealing import AuditNote
from runwick.stores.controls import command_conflict

DISPATCH: Final = "dispatch"
"""The action of its audit row."""
_REPLY: Final = msgspec.json.Decoder(tuple[str, DuplicateMatch, bool])


def fingerprint(command: Command, note: AuditNote) -> bytes:
    """32 bytes: the same operation id must always come with the same ones. No other command has the same. Not in it:
    what a declaration says and a release may change, which are versions, retry settings, limits and the expiry."""
    content = (
        DISPATCH,
        note.actor,
        note.reason,
        command.kind.name,
        command.payload,
        command.lane,
        command.not_before_ms,
        command.delay_ms,
        command.tenant,
        command.metadata,
        command.active_key,
        command.window_key,
    )
    return hashlib.sha256(msgspec.json.encode(content)).digest()


def reply_of(receipt: Receipt) -> bytes:
    """What is kept of the answer, as JSON: the job, which key found it, whether policies differed."""
    return msgspec.json.encode((receipt.job_id, receipt.duplicate_match, receipt.policy_drift))


def first_receipt(
    command: Command, note: AuditNote, kept_fingerprint: bytes, reply: bytes | str, profile: str
) -> Receipt:
    """The receipt of a command that was kept.

    Args:
        command, note: as they come now.
        kept_fingerprint, reply: what was kept under the command's operation id.
        profile: the store's durability rule.

    Raises:
        StoreError: it was kept for something else (code ``operation_conflict``).
    """
    if kept_fingerprint != fingerprint(command, note):
        raise command_conflict(command)
    job, match, drift = _REPLY.decode(reply)
    disposition = ReceiptDisposition.CREATED if match is DuplicateMatch.NONE else ReceiptDisposition.REUSED
    return Receipt(id_bytes(job), command.operation_id, disposition, profile, match, policy_drift=drift)
