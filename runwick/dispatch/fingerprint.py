"""The fingerprint of a request: the same for what asks for the same, so that a window key that comes again with another
request is seen. Made only where there is a window key."""

import hashlib
import json
from typing import Any

import msgspec

from runwick.contracts.dispatching import Command
from runwick.contracts.limits import LimitKind, RateNeed, ScopeNeed

_NUMBER = 1
"""MessagePack's extension type of a number, which is kept as it was written: ``1`` is not ``1.0``."""
_ENCODER = msgspec.msgpack.Encoder(order="sorted")


def fingerprint(command: Command) -> bytes:
    """32 bytes: SHA-256 of name, payload, queue, priority, start, both keys, resource keys, metadata and tenant as
    MessagePack with sorted members. Not in it: versions, retry settings, limits, lengths of windows, the expiry."""
    payload = json.loads(command.payload, parse_int=_number, parse_float=_number)
    request = (
        command.kind.name,
        payload,
        command.lane.queue,
        command.lane.priority,
        command.not_before_ms,
        command.active_key,
        command.window_key,
        _resources(command.scopes),
        _resources(command.rates),
        command.metadata,
        command.tenant,
    )
    return hashlib.sha256(_ENCODER.encode(request)).digest()


def _resources(needs: tuple[ScopeNeed, ...] | tuple[RateNeed, ...]) -> list[str]:
    return sorted({need.key for need in needs if need.kind is LimitKind.RESOURCE})


def _number(text: str) -> Any:
    return msgspec.msgpack.Ext(_NUMBER, text.encode())
