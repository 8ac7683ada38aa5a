"""Steer: an operator pauses or resumes a queue, or changes a capacity, if it still stands as the operator saw it.

Each change gets one audit row. A command that did anything is answered the same for ever.
"""

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.controls import SteerAction, SteerCommand, SteerReply
from runwick.contracts.history import AuditRecord
from runwick.contracts.stores import Act
from runwick.policy.limit_ids import scope_id
from runwick.policy.lines import Calling
from runwick.stores.controls import command_conflict
from runwick.stores.memory.rows import Kept
from runwick.stores.memory.tables import Tables, act
from runwick.stores.memory.tend import call_in_everywhere
from runwick.stores.steering import Stands, audit_target, fingerprint, judged


def steer(tables: Tables, command: SteerCommand, clock: Clock) -> Act[SteerReply]:
    """Do this to the queue or the scope."""
    return act(command.action.value, lambda: _steer(tables, command, clock.now_ms()))


def _steer(tables: Tables, command: SteerCommand, now_ms: int) -> SteerReply:
    key = command.application, command.command_id
    if (kept := tables.commands.get(key)) is not None:
        if kept.fingerprint != fingerprint(command):
            raise command_conflict(command)
        assert isinstance(kept.reply, SteerReply)
        return msgspec.structs.replace(kept.reply, replayed=True)
    tables.admit(command.action.value, command.application)
    reply = judged(command, _stands(tables, command))
    if reply.code is None:
        _do(tables, command, now_ms)
        tables.audit.append((command.application, _record(tables, command, reply, now_ms)))
        tables.commands[key] = Kept(fingerprint(command), reply)
    return reply


def _stands(tables: Tables, command: SteerCommand) -> Stands | None:
    if command.action is SteerAction.SET_CAPACITY:
        row = tables.limits.scopes.get(scope_id(command.application, command.kind, command.key))
        return None if row is None else Stands.scope(row.revision, row.scope.capacity)
    queue = tables.queues.get((command.application, command.key))
    return None if queue is None else Stands.queue(queue.revision, queue.since_ms is not None)


def _do(tables: Tables, command: SteerCommand, now_ms: int) -> None:
    if command.capacity is not None:
        row = tables.limits.scopes[scope_id(command.application, command.kind, command.key)]
        row.revision += 1
        calling = Calling(tables.open_line, now_ms)
        calling.into_scope(row.scope, row.scope.resize(command.capacity))
        tables.take_all_calls(calling, now_ms)
        return
    queue = tables.queues[command.application, command.key]
    queue.revision += 1
    queue.since_ms = now_ms if command.action is SteerAction.PAUSE else None
    if queue.since_ms is None:
        tables.made_due = True
        call_in_everywhere(tables, command.application, now_ms)


def _record(tables: Tables, command: SteerCommand, reply: SteerReply, now_ms: int) -> AuditRecord:
    return AuditRecord(
        cursor=str(len(tables.audit) + 1),
        at_ms=now_ms,
        actor=command.actor.subject,
        actor_display=command.actor.display,
        actor_scheme=command.actor.scheme,
        action=command.action.value,
        job_id=None,
        generation=None,
        before=reply.before,
        after=reply.after,
        reason=command.reason,
        command_id=command.command_id,
        target=audit_target(command),
    )
