"""Steer: an operator pauses or resumes a queue, or changes a capacity, if it still stands as the operator saw it.

One call, whatever is concerned; `lua/acts/steer.lua` does all of it, and decides as `stores.steering` says. A command
that did anything is answered the same for ever.
"""

from typing import Final

import msgspec

from runwick.contracts.controls import SteerAction, SteerCommand, SteerReply
from runwick.contracts.stores import Act
from runwick.policy.limit_ids import scope_id
from runwick.stores.controls import command_conflict
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.packed import arguments, binary
from runwick.stores.steering import audit_target, fingerprint

_Reply = tuple[str | None, int | None, str | None, str | None]

_answered: Final = msgspec.msgpack.Decoder(tuple[bool, _Reply] | None).decode


def steer(command: SteerCommand) -> Act[SteerReply]:
    """Do this to the queue or the scope."""
    return Act(command.action.value, lambda: _steer(command))


def _steer(command: SteerCommand) -> Calls[SteerReply]:
    actor = command.actor
    asked = arguments(
        binary(command.command_id),
        binary(fingerprint(command)),
        actor.subject,
        actor.display,
        actor.scheme,
        command.reason,
        _whom(command),
        command.expected_revision,
        command.capacity,
        audit_target(command),
    )
    answer = _answered((yield Call(command.action.value, command.application, asked)))
    if answer is None:
        raise command_conflict(command)
    replayed, reply = answer
    return SteerReply(*reply, replayed=replayed)


def _whom(command: SteerCommand) -> str | msgspec.Raw:
    """The queue's name, or the scope's id."""
    if command.action is SteerAction.SET_CAPACITY:
        return binary(scope_id(command.application, command.kind, command.key))
    return command.key
