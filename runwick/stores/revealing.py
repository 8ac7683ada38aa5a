"""What every store decides alike about showing what is private."""

import hashlib

import msgspec

from runwick.contracts.identity import id_text
from runwick.contracts.revealing import RevealCommand


def audit_action(command: RevealCommand) -> str:
    """What the audit trail calls it: ``reveal_payload``."""
    return f"reveal_{command.what.value}"


def audit_target(command: RevealCommand) -> str | None:
    """What else than the job it is about: ``attempt 0198…``."""
    return None if command.attempt_id is None else f"attempt {id_text(command.attempt_id)}"


def fingerprint(command: RevealCommand) -> bytes:
    """32 bytes: the same command id must always come with the same ones. No other command has the same."""
    content = ("reveal", command.what, command.actor, command.reason, command.job_id, command.attempt_id)
    return hashlib.sha256(msgspec.json.encode(content)).digest()
