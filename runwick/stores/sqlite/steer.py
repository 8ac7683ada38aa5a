"""Steer: an operator pauses or resumes a queue, or changes a capacity, if it still stands as the operator saw it.

Each change gets one audit row, and the command's answer is kept. Nothing is kept of a command that changed nothing.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.controls import SteerAction, SteerCommand, SteerReply
from runwick.contracts.limits import CALLED_MAX
from runwick.policy.limit_ids import scope_id
from runwick.policy.lines import Calling
from runwick.stores.controls import command_conflict
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.going import GoesOn, Rest
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.limits import Limits, OpenLines
from runwick.stores.sqlite.tend import call_in_everywhere, go_on
from runwick.stores.sqlite.trail import audit_row
from runwick.stores.steering import Stands, audit_target, fingerprint, judged
from runwick.stores.steps import Step, Steps

_REPLY: Final = msgspec.json.Decoder(SteerReply)


def steer(gate: Gate, interned: Interned, command: SteerCommand, clock: Clock) -> GoesOn[SteerReply]:
    """Do this to the queue or the scope.

    Raises (when run):
        StoreError: the command id was used for something else (code ``operation_conflict``).
    """
    return GoesOn(command.action.value, lambda rest: _steer(gate, interned, command, clock, rest))


def _steer(gate: Gate, interned: Interned, command: SteerCommand, clock: Clock, rest: Rest) -> Steps[SteerReply]:
    yield from interned.refresh()
    application = interned.applications.ids.get(command.application)
    if application is None:
        return judged(command, None)
    for kept_fingerprint, kept_reply in (yield Step("command_known", (application, command.command_id))):
        if kept_fingerprint != fingerprint(command):
            raise command_conflict(command)
        return msgspec.structs.replace(_REPLY.decode(kept_reply), replayed=True)
    gate.admit(command.action.value, application)
    now_ms = clock.now_ms()
    reply = judged(command, (yield from _stands(application, command)))
    if reply.code is None:
        if command.action is SteerAction.SET_CAPACITY:
            owed = yield from _resize(interned, command, reply, now_ms)
            go_on(gate, interned, command.application, owed, clock, rest)
        else:
            if command.action is SteerAction.RESUME:
                opens = application, command.key
                yield from call_in_everywhere(gate, interned, command.application, clock, rest, opens=opens)
            yield from _turn(interned, application, command, reply, now_ms)
        yield from _record(application, command, reply, now_ms)
    return reply


def _stands(application: int, command: SteerCommand) -> Steps[Stands | None]:
    if command.action is SteerAction.SET_CAPACITY:
        limit = scope_id(command.application, command.kind, command.key)
        for revision, capacity in (yield Step("scope_stands", (limit,))):
            return Stands.scope(revision, capacity)
    else:
        for revision, since_ms in (yield Step("queue_stands", (application, command.key))):
            return Stands.queue(revision, since_ms is not None)
    return None


def _turn(interned: Interned, application: int, command: SteerCommand, reply: SteerReply, now_ms: int) -> Steps[None]:
    """Pause the queue, or resume it."""
    since_ms = now_ms if command.action is SteerAction.PAUSE else None
    yield Step("pause_put", (application, command.key, reply.revision, since_ms))
    yield Step("intake_raise", (application,))
    interned.made_names()


def _resize(interned: Interned, command: SteerCommand, reply: SteerReply, now_ms: int) -> Steps[Mapping[bytes, int]]:
    """Give the scope its capacity, and call those for whom there is room now; answers what is owed."""
    limit = scope_id(command.application, command.kind, command.key)
    limits, lines = Limits(), OpenLines(interned)
    yield from limits.read([limit], {})
    yield from lines.read(limits, {limit: CALLED_MAX})
    calling = Calling(lines, now_ms)
    scope = limits.scopes[limit]
    assert command.capacity is not None, "a capacity is set to something"
    calling.into_scope(scope, scope.resize(command.capacity))
    yield Step("scope_resize", (limit, scope.capacity, reply.revision))
    yield from limits.write(calling.called)
    return calling.owed


def _record(application: int, command: SteerCommand, reply: SteerReply, now_ms: int) -> Steps[None]:
    ((position,),) = yield Step("next_position")
    row = audit_row(
        position,
        application,
        command.actor,
        command.action.value,
        now_ms,
        command_id=command.command_id,
        reason=command.reason,
        before=reply.before,
        after=reply.after,
        target=audit_target(command),
    )
    yield Step("audit_add", row)
    kept = (application, command.command_id, fingerprint(command), msgspec.json.encode(reply), now_ms)
    yield Step("command_keep", kept)
