"""Control: what an operator asks for is done to each target that still stands as the operator saw it.

One call, whatever is concerned; `lua/acts/control.lua` does all of it, and decides as `stores.controls` says. A command
that did anything is answered the same for ever.
"""

from typing import Final

import msgspec

from runwick.contracts.controls import ControlAnswer, ControlCommand, ControlReply
from runwick.contracts.stores import Act
from runwick.stores.controls import check_named_once, command_conflict, fingerprint
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.packed import STATES, arguments, binary


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    """About one target; of a job that there is not, the first two alone."""

    job_id: bytes
    code: str | None
    state: int | None = None
    generation: int | None = None
    revision: int | None = None
    cancel_requested: bool = False
    attempt_id: bytes | None = None

    def shown(self) -> ControlAnswer:
        return ControlAnswer(
            self.job_id,
            self.code,
            None if self.state is None else STATES[self.state],
            self.generation,
            self.revision,
            self.cancel_requested,
            self.attempt_id,
        )


_answered: Final = msgspec.msgpack.Decoder(tuple[bool, list[_Answer]] | None).decode


def control(command: ControlCommand) -> Act[ControlReply]:
    """Do this to all targets; answers in their order."""
    return Act(command.action.value, lambda: _control(command))


def _control(command: ControlCommand) -> Calls[ControlReply]:
    check_named_once(command)
    targets = [
        value for target in command.targets for value in (binary(target.job_id), target.generation, target.revision)
    ]
    actor = command.actor
    asked = arguments(
        binary(command.command_id),
        binary(fingerprint(command)),
        actor.subject,
        actor.display,
        actor.scheme,
        command.reason,
        targets,
    )
    answer = _answered((yield Call(command.action.value, command.application, asked)))
    if answer is None:
        raise command_conflict(command)
    replayed, answers = answer
    return ControlReply([each.shown() for each in answers], replayed)
