"""Reveal: what is private is shown to somebody, and the audit trail says so in the same write.

What was shown is never kept with the command: sent again it reads again, and writes no second row.
"""

from typing import Final

import msgspec

from runwick.contracts.revealing import RevealCommand, Revealed, Secret
from runwick.contracts.stores import Act
from runwick.stores.controls import command_conflict
from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.details import detail_of
from runwick.stores.redis.leased import Body
from runwick.stores.revealing import audit_action, audit_target, fingerprint


class _Shown(msgspec.Struct, frozen=True, array_like=True):
    """All of it absent: there is no such job."""

    replayed: bool | None = None
    is_apart: bool = False
    """Whether a payload lies by itself, and not in the job's body."""
    content: bytes | None = None
    text: str | None = None


_shown: Final = msgspec.msgpack.Decoder(_Shown | None).decode
_body: Final = msgspec.msgpack.Decoder(Body).decode


def reveal(command: RevealCommand) -> Act[Revealed | None]:
    """Show it; None when there is no such job."""
    return Act("reveal", lambda: _reveal(command))


def _reveal(command: RevealCommand) -> Calls[Revealed | None]:
    asked = packed.arguments(
        command.what.value,
        packed.binary(command.command_id),
        packed.binary(fingerprint(command)),
        command.actor.subject,
        command.actor.display,
        command.actor.scheme,
        command.reason,
        audit_action(command),
        audit_target(command),
        packed.binary(command.job_id),
        packed.optional_binary(command.attempt_id),
    )
    shown = _shown((yield Call("reveal", command.application, asked)))
    if shown is None:
        raise command_conflict(command)
    if shown.replayed is None:
        return None
    return msgspec.structs.replace(_read(command.what, shown), replayed=shown.replayed)


def _read(what: Secret, shown: _Shown) -> Revealed:
    match what:
        case Secret.PAYLOAD:
            return Revealed(json=_payload(shown))
        case Secret.RESULT:
            return Revealed(json=shown.content)
        case Secret.ERROR:
            return Revealed(error=detail_of(shown.content).error)
        case Secret.BLACK_BOX:
            return Revealed(black_box=detail_of(shown.content).black_box)
        case Secret.STACK:
            return Revealed(text=shown.text)


def _payload(shown: _Shown) -> bytes | None:
    if shown.is_apart or shown.content is None:
        return shown.content
    return _body(shown.content).payload
