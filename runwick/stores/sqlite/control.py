"""Control: what an operator asks for is done to each target that still stands as the operator saw it.

::

    command ──▶ known? ── yes ─▶ the kept reply
                  └─ no ─▶ judge each target ──▶ write what may be written ──▶ one audit row per job ──▶ keep the reply

Nothing is kept of a command that did nothing. Who may do what is decided by whoever sends the command.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.controls import ControlAction, ControlAnswer, ControlCommand, ControlReply, JobTarget
from runwick.contracts.states import LEASED_STATES, JobState
from runwick.contracts.stores import Act
from runwick.stores.controls import Standing, check_named_once, command_conflict, fingerprint, refusal
from runwick.stores.sqlite.ending import Endings
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.giving import GivenBack
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import attempt_id
from runwick.stores.sqlite.trail import audit_row
from runwick.stores.steps import Step, Steps

_ANSWERS: Final = msgspec.json.Decoder(list[ControlAnswer])


class _Found(NamedTuple):
    """A target as it stands."""

    job: int
    stands: Standing
    attempt_id: bytes | None
    """Of the attempt that holds it, if one does; so for the next two."""
    claim_token: bytes | None
    worker: bytes | None
    job_id: bytes
    called: bytes | None
    """The limit that it was called in for, where it waits; so for the next one."""
    due_at_ms: int
    active: bytes | None
    """The id of its active key."""
    active_is_live: bool


class _Change(NamedTuple):
    """What is done to a target."""

    found: _Found
    after: Standing


def control(
    gate: Gate, interned: Interned, command: ControlCommand, clock: Clock, want: Callable[[bytes], None]
) -> Act[ControlReply]:
    """Do this to all targets; answers in their order.

    Args:
        gate: of the store.
        interned: of the store.
        command: what to do.
        clock: the store's.
        want: told each worker of which something is asked.

    Raises (when run):
        InvalidArgument: a job is named twice (code ``invalid_argument``).
        StoreError: the command id was used for something else (code ``operation_conflict``).
    """
    return Act(command.action.value, lambda: _control(gate, interned, command, clock, want))


def _control(
    gate: Gate, interned: Interned, command: ControlCommand, clock: Clock, want: Callable[[bytes], None]
) -> Steps[ControlReply]:
    check_named_once(command)
    yield from interned.refresh()
    application = interned.applications.ids.get(command.application)
    if application is None:
        return ControlReply([ControlAnswer(target.job_id, "not_found") for target in command.targets])
    for kept_fingerprint, kept_answers in (yield Step("command_known", (application, command.command_id))):
        if kept_fingerprint != fingerprint(command):
            raise command_conflict(command)
        return ControlReply(_ANSWERS.decode(kept_answers), replayed=True)
    gate.admit(command.action.value, application)
    answers, changes = yield from _judge(application, command)
    if changes:
        now_ms = clock.now_ms()
        position = yield from _write(interned, command.action, application, changes, now_ms)
        yield Step("audit_add", _audit_rows(command, application, changes, position, now_ms), many=True)
        kept = (application, command.command_id, fingerprint(command), msgspec.json.encode(answers), now_ms)
        yield Step("command_keep", kept)
    for found, _ in changes:
        if found.worker is not None:
            want(found.worker)
    return ControlReply(answers)


def _judge(application: int, command: ControlCommand) -> Steps[tuple[list[ControlAnswer], list[_Change]]]:
    """The answer for each target, how it stands when everything is done, and what has to be done for that."""
    answers: list[ControlAnswer] = []
    changes: list[_Change] = []
    opened: set[bytes] = set()
    """Active keys of jobs that this command opens."""
    looks = command.action is ControlAction.LOOK
    for target in command.targets:
        found = yield from _find(application, target)
        code = refusal(command.action, target, None if found is None else found.stands)
        if found is None:
            answers.append(ControlAnswer(target.job_id, code))
            continue
        if code is None and found.stands.state.terminal and found.active is not None:
            if found.active_is_live or found.active in opened:
                code = "uniqueness_conflict"
            opened.add(found.active)
        stands = found.stands
        if code is None:
            stands = _after(command.action, stands)
            changes.append(_Change(found, stands))
        state, generation, revision, cancel_requested, _ = stands
        seen = found.attempt_id if looks and code is None else None
        answers.append(ControlAnswer(target.job_id, code, state, generation, revision, cancel_requested, seen))
    return answers, changes


def _find(application: int, target: JobTarget) -> Steps[_Found | None]:
    for row in (yield Step("control_target", (application, target.job_id))):
        job, state, generation, revision, cancel_ms, begun_at_ms, first_attempt_id, claim_token, worker, *waits = row
        stands = Standing(JobState(state), generation, revision, cancel_ms is not None, begun_at_ms is not None)
        held_by = None if first_attempt_id is None else attempt_id(first_attempt_id, job)
        called, due_at_ms, active, active_is_live = waits
        return _Found(
            job,
            stands,
            held_by,
            claim_token,
            worker,
            target.job_id,
            called,
            due_at_ms,
            active,
            bool(active_is_live),
        )
    return None


def _after(action: ControlAction, stands: Standing) -> Standing:
    """How a job stands to which this was done."""
    state, generation, revision, _, _ = stands
    match action:
        case ControlAction.CANCEL if state in LEASED_STATES:
            return stands._replace(revision=revision + 1, cancel_requested=True)
        case ControlAction.CANCEL:
            return stands._replace(state=JobState.CANCELLED, revision=revision + 1)
        case ControlAction.RETRY | ControlAction.RERUN:
            return stands._replace(state=JobState.PENDING, generation=generation + 1, revision=revision + 1)
        case ControlAction.LOOK:
            return stands


def _write(
    interned: Interned, action: ControlAction, application: int, changes: Sequence[_Change], now_ms: int
) -> Steps[int]:
    """Do it to all these; answers the next position in commit order."""
    endings = yield from Endings.opened(now_ms)
    match action:
        case ControlAction.CANCEL:
            yield Step("control_cancel", [(found.job, now_ms) for found, _ in changes], many=True)
            ended = [found for found, after in changes if after.state is JobState.CANCELLED]
            given_back = GivenBack(interned)
            for found in ended:
                given_back.left(found.called, found.due_at_ms, found.job_id)
            endings.cancel(found.job for found in ended)
            yield from endings.write()
            yield from given_back.call_in(now_ms)
        case ControlAction.RETRY | ControlAction.RERUN:
            opened = [(found.job, after.generation, after.revision, now_ms) for found, after in changes]
            yield Step("control_open", opened, many=True)
        case ControlAction.LOOK:
            asked = [
                (found.attempt_id, found.job, application, found.worker, found.claim_token, now_ms)
                for found, _ in changes
            ]
            yield Step("control_look", asked, many=True)
    return endings.position


def _audit_rows(
    command: ControlCommand, application: int, changes: Sequence[_Change], position: int, now_ms: int
) -> list[tuple[object, ...]]:
    return [
        audit_row(
            place,
            application,
            command.actor,
            command.action.value,
            now_ms,
            command_id=command.command_id,
            reason=command.reason,
            job=found.job,
            generation=after.generation,
            before=found.stands.state.value,
            after=after.state.value,
        )
        for place, (found, after) in enumerate(changes, position)
    ]
