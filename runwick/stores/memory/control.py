"""Control: what an operator asks for is done to each target that still stands as the operator saw it.

::

    cancel   waits ──▶ ends as cancelled            held ──▶ asked to stop, its state stays
    retry    failed, cancelled ──▶ pending, in the next generation with fresh budgets
    rerun    succeeded ──▶ the same                 (neither while its active key is another job's)
    look     held and begun ──▶ its worker is asked for the stack; the job stays as it is

Each job that is changed, or looked at, gets one audit row. A command that did anything is answered the same for ever.
"""

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.controls import ControlAction, ControlAnswer, ControlCommand, ControlReply, JobTarget
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores.controls import Standing, check_named_once, command_conflict, fingerprint, refusal
from runwick.stores.memory import trail
from runwick.stores.memory.rows import JobRow, Kept, Look
from runwick.stores.memory.tables import Tables, act


def control(tables: Tables, command: ControlCommand, clock: Clock) -> Act[ControlReply]:
    """Do this to all targets; answers in their order."""
    return act(command.action.value, lambda: _control(tables, command, clock.now_ms()))


def _control(tables: Tables, command: ControlCommand, now_ms: int) -> ControlReply:
    check_named_once(command)
    key = command.application, command.command_id
    if (kept := tables.commands.get(key)) is not None:
        if kept.fingerprint != fingerprint(command):
            raise command_conflict(command)
        assert isinstance(kept.reply, ControlReply)
        return msgspec.structs.replace(kept.reply, replayed=True)
    tables.admit(command.action.value, command.application)
    reply = ControlReply([_answer(tables, command, target, now_ms) for target in command.targets])
    tables.call_in(now_ms)
    if any(answer.code is None for answer in reply.answers):
        tables.commands[key] = Kept(fingerprint(command), reply)
    return reply


def _answer(tables: Tables, command: ControlCommand, target: JobTarget, now_ms: int) -> ControlAnswer:
    row = tables.find(command.application, target.job_id)
    code = refusal(command.action, target, None if row is None else _standing(row))
    if row is None:
        return ControlAnswer(target.job_id, code)
    attempt_id = None
    if code is None and row.state.terminal and row.active in tables.active:
        code = "uniqueness_conflict"
    if code is None:
        before = row.state
        attempt_id = _do(tables, command.action, row, now_ms)
        _audit(tables, command, row, before, now_ms)
    return ControlAnswer(
        target.job_id, code, row.state, row.generation, row.revision, row.cancel_stands, attempt_id=attempt_id
    )


def _standing(row: JobRow) -> Standing:
    begun = row.lease is not None and row.lease.begun_at_ms is not None
    return Standing(row.state, row.generation, row.revision, row.cancel_stands, begun)


def _do(tables: Tables, action: ControlAction, row: JobRow, now_ms: int) -> bytes | None:
    """Change the job; for a look, answer whose stack will come."""
    match action:
        case ControlAction.CANCEL:
            _cancel(tables, row, now_ms)
        case ControlAction.RETRY | ControlAction.RERUN:
            _open(tables, row, now_ms)
        case ControlAction.LOOK:
            return _look(tables, row, now_ms)
    return None


def _cancel(tables: Tables, row: JobRow, now_ms: int) -> None:
    row.cancel_requested_at_ms = now_ms
    if row.lease is None:
        tables.leave(row)
        tables.close_cancelled(row, now_ms)
    else:
        row.revision += 1
        tables.wanted.add(row.lease.worker)


def _open(tables: Tables, row: JobRow, now_ms: int) -> None:
    """Begin the next generation, with nothing counted."""
    row.generation += 1
    row.revision += 1
    row.attempts = row.executions = row.unstarted = row.crashes = 0
    row.code = row.cancel_requested_at_ms = row.ended_at_ms = row.result = None
    row.due_at_ms = now_ms
    row.expires_at_ms = None if row.lives_ms is None else now_ms + row.lives_ms
    if row.active is not None:
        tables.active[row.active] = row.job
    tables.wait(row, JobState.PENDING)


def _look(tables: Tables, row: JobRow, now_ms: int) -> bytes:
    assert row.lease is not None
    tables.looks[row.lease.attempt_id] = Look(row.job, row.lease.claim_token, row.lease.worker, now_ms)
    tables.wanted.add(row.lease.worker)
    return row.lease.attempt_id


def _audit(tables: Tables, command: ControlCommand, row: JobRow, before: JobState, now_ms: int) -> None:
    trail.write(
        tables,
        row,
        command.actor,
        command.action.value,
        now_ms,
        command_id=command.command_id,
        reason=command.reason,
        before=before.value,
        after=row.state.value,
    )
