"""What every store decides alike about a control, once it has read how a job stands."""

import hashlib
from typing import Final, NamedTuple

import msgspec

from runwick.contracts.controls import ControlAction, ControlCommand, JobTarget, SteerCommand
from runwick.contracts.dispatching import Command
from runwick.contracts.errors import InvalidArgument, StoreError
from runwick.contracts.identity import id_text
from runwick.contracts.revealing import RevealCommand
from runwick.contracts.states import LEASED_STATES, JobState

_OPENS_FROM: Final = {
    ControlAction.RETRY: frozenset({JobState.FAILED, JobState.CANCELLED}),
    ControlAction.RERUN: frozenset({JobState.SUCCEEDED}),
}


LOOK_LASTS_MS: Final = 30_000
"""For how long a worker is asked for a stack that it does not give. A renewal asks for so many at most, and those that
nobody answers must not keep later ones out for ever."""


class Standing(NamedTuple):
    """How a job stands when a control comes."""

    state: JobState
    generation: int
    revision: int
    cancel_requested: bool
    """Whether it is held and was asked to stop."""
    begun: bool
    """Whether it is held and its executor's begun mark is known."""


def refusal(action: ControlAction, target: JobTarget, stands: Standing | None) -> str | None:
    """The code of why nothing may be done to this target; None when the action may go on. None stands: no such job."""
    if stands is None:
        return "not_found"
    if target.generation != stands.generation:
        return "stale_generation"
    if target.revision != stands.revision:
        return "stale_revision"
    return None if _allows(action, stands) else "invalid_state"


def _allows(action: ControlAction, stands: Standing) -> bool:
    if action is ControlAction.CANCEL:
        return not stands.state.terminal and not stands.cancel_requested
    if action is ControlAction.LOOK:
        return stands.state in LEASED_STATES and stands.begun
    return stands.state in _OPENS_FROM[action]


def check_named_once(command: ControlCommand) -> None:
    """Go on only if no job is named twice: the second time, it would not stand as the operator saw it.

    Raises:
        InvalidArgument: one is (code ``invalid_argument``).
    """
    seen: set[bytes] = set()
    for target in command.targets:
        if target.job_id in seen:
            raise InvalidArgument(
                "invalid_argument",
                f"job {id_text(target.job_id)} is named twice; nothing was written, name each job once",
            )
        seen.add(target.job_id)


def fingerprint(command: ControlCommand) -> bytes:
    """32 bytes: the same command id must always come with the same ones."""
    content = (command.action, command.actor, command.reason, command.targets)
    return hashlib.sha256(msgspec.json.encode(content)).digest()


def command_conflict(command: ControlCommand | SteerCommand | RevealCommand | Command) -> StoreError:
    """A command id that was used for something else. That of a dispatch by hand is its operation id."""
    command_id, asked = _asked(command)
    return StoreError(
        "operation_conflict",
        f"command {id_text(command_id)} was used for something else; nothing was written, give this {asked} "
        "a command id of its own",
    )


def _asked(command: ControlCommand | SteerCommand | RevealCommand | Command) -> tuple[bytes, str]:
    match command:
        case Command():
            return command.operation_id, "dispatch"
        case RevealCommand():
            return command.command_id, "reveal"
        case _:
            return command.command_id, command.action.value
