"""Control: what an operator asks for is done to each target that still stands as the operator saw it, in one statement.

::

    cancel          waits ──▶ closed as cancelled              leased ──▶ asked to stop, its state stays
    retry, rerun    closed ──▶ waits, in the next generation   (`reopen`), unless its active key is another's by now
    look            leased and begun ──▶ its worker is asked for the stack

The statement keeps its reply for a command that is sent again, and tells the workers of which something is asked with
its own commit. Who may do what is decided by whoever sends the command.
"""

from typing import Final

import msgspec

from runwick.contracts.controls import ControlAction, ControlAnswer, ControlCommand, ControlReply
from runwick.contracts.errors import StoreUnavailable
from runwick.contracts.identity import id_bytes
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores.controls import check_named_once, command_conflict, fingerprint
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.calling import CALLS_MAX, call_in
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Step, Steps

_STATEMENTS: Final = {
    ControlAction.CANCEL: "cancel",
    ControlAction.RETRY: "reopen",
    ControlAction.RERUN: "reopen",
    ControlAction.LOOK: "look",
}
_REPLY: Final = msgspec.json.Decoder(
    list[tuple[str, str | None, JobState | None, int | None, int | None, bool, str | None]]
)


def control(bound: Bound, command: ControlCommand) -> Act[ControlReply]:
    """Do this to all targets; answers in their order.

    Raises (when run):
        InvalidArgument: a job is named twice (code ``invalid_argument``).
        StoreError: the command id was used for something else (code ``operation_conflict``).
        StoreUnavailable: somebody's transaction holds one of the jobs; nothing was written.
    """
    return MakesDue(command.action.value, lambda due: _control(bound, command, due))


def _control(bound: Bound, command: ControlCommand, due: Due) -> Steps[ControlReply]:
    check_named_once(command)
    application = yield from bound.names.find(Wanted(command.application))
    if application is None:
        return ControlReply([ControlAnswer(target.job_id, "not_found") for target in command.targets])
    opens = command.action in (ControlAction.RETRY, ControlAction.RERUN)
    parameters = (
        *bound.gate(),
        packed.number(application),
        packed.Id(command.command_id),
        fingerprint(command),
        packed.text(command.actor.subject),
        packed.text(command.actor.display),
        packed.text(command.actor.scheme),
        command.reason,
        packed.ids([target.job_id for target in command.targets]),
        packed.numbers([target.generation for target in command.targets]),
        packed.numbers([target.revision for target in command.targets]),
        *([packed.Text(command.action.encode())] if opens else []),
        *([CALLS_MAX] if command.action is ControlAction.CANCEL else []),
    )
    (known_fingerprint, reply, *_), *called = yield Step(_STATEMENTS[command.action], parameters)
    if known_fingerprint not in (None, fingerprint(command)):
        raise command_conflict(command)
    if reply is None:
        raise StoreUnavailable(
            "store_unavailable",
            "another transaction holds the row of a job that is to be cancelled; nothing was written, try again",
        )
    answers = _answers(reply)
    replayed = known_fingerprint is not None
    if opens and not replayed and any(answer.code is None for answer in answers):
        due.add(application)
    call_in(bound, (tuple(row[2:]) for row in called), due, application)
    return ControlReply(answers, replayed)


def _answers(reply: str) -> list[ControlAnswer]:
    return [
        ControlAnswer(
            id_bytes(job),
            code,
            state,
            generation,
            revision,
            cancel_requested,
            None if attempt is None else id_bytes(attempt),
        )
        for job, code, state, generation, revision, cancel_requested, attempt in _REPLY.decode(reply)
    ]
