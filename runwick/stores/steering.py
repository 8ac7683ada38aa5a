"""What every store decides alike when an operator steers: pauses or resumes a queue, or changes a capacity."""

import hashlib
from typing import Final, NamedTuple

import msgspec

from runwick.contracts.controls import SteerAction, SteerCommand, SteerReply

OPEN: Final = "open"
PAUSED: Final = "paused"


class Stands(NamedTuple):
    """How a queue or a scope stands when a command comes."""

    revision: int
    """0 for a queue that nobody ever paused."""
    value: str
    """`OPEN` or `PAUSED`; of a scope its capacity, in digits."""

    @classmethod
    def queue(cls, revision: int, paused: bool) -> "Stands":
        return cls(revision, PAUSED if paused else OPEN)

    @classmethod
    def scope(cls, revision: int, capacity: int) -> "Stands":
        return cls(revision, str(capacity))


def judged(command: SteerCommand, stands: Stands | None) -> SteerReply:
    """What to answer. Without a code it is to be done: the reply's revision and `after` are written, the reply is kept.

    Args:
        stands: None where there is no such queue or scope in the application.
    """
    if stands is None:
        return SteerReply("not_found")
    after = _asked_for(command)
    code = None
    if command.expected_revision != stands.revision:
        code = "stale_revision"
    elif after == stands.value:
        code = "invalid_state"
    if code is not None:
        return SteerReply(code, stands.revision, stands.value)
    return SteerReply(None, stands.revision + 1, stands.value, after)


def fingerprint(command: SteerCommand) -> bytes:
    """32 bytes: the same command id must always come with the same ones. No control has the same."""
    content = (
        command.action,
        command.actor,
        command.reason,
        command.kind,
        command.key,
        command.expected_revision,
        command.capacity,
    )
    return hashlib.sha256(msgspec.json.encode(content)).digest()


def audit_target(command: SteerCommand) -> str:
    """What it is about, in an audit row: ``queue emails``, ``resource invoice:7``."""
    return f"{command.kind.value} {command.key}"


def _asked_for(command: SteerCommand) -> str:
    match command.action:
        case SteerAction.PAUSE:
            return PAUSED
        case SteerAction.RESUME:
            return OPEN
        case SteerAction.SET_CAPACITY:
            return str(command.capacity)
