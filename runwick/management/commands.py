"""From what a caller gives to a command that a store may be asked: everything is checked before anything is sent."""

import unicodedata
import uuid
from collections.abc import Sequence
from typing import Any, Final

from runwick.contracts.controls import TARGETS_MAX, ControlAction, ControlCommand, JobTarget, ManagementActor
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.identity import id_bytes, id_text
from runwick.contracts.names import name_problem

NAME_MAX_CHARACTERS: Final = 256
"""Of an actor's subject and of what is displayed of it."""
REASON_MAX_CHARACTERS: Final = 1_000


def command_of(
    action: ControlAction,
    application: str,
    targets: Sequence[JobTarget],
    actor: ManagementActor,
    reason: str | None,
    command_id: "str | uuid.UUID | bytes",
) -> ControlCommand:
    """The command, checked.

    Raises:
        InvalidArgument: something in it cannot be (codes ``invalid_argument``, ``invalid_id``, ``batch_too_large``).
    """
    _check_actor(actor)
    if reason is not None:
        _check_text("reason", reason, REASON_MAX_CHARACTERS)
    _check_targets(targets)
    return ControlCommand(
        action=action,
        command_id=id_bytes(command_id),
        application=application,
        actor=actor,
        reason=reason,
        targets=tuple(targets),
    )


def _check_actor(actor: object) -> None:
    if not isinstance(actor, ManagementActor):
        raise _refused(f"actor is {type(actor).__name__}; give ManagementActor(subject, display, scheme)")
    _check_text("the actor's subject", actor.subject, NAME_MAX_CHARACTERS)
    _check_text("the actor's display name", actor.display, NAME_MAX_CHARACTERS)
    if not isinstance(actor.scheme, str) or (problem := name_problem(actor.scheme)) is not None:
        why = f": {problem}" if isinstance(actor.scheme, str) else ""
        raise _refused(f"the actor's scheme {actor.scheme!r} is no name such as service or session{why}")


def _check_targets(targets: object) -> None:
    if not isinstance(targets, Sequence) or isinstance(targets, str | bytes):
        raise _refused(f"targets are {type(targets).__name__}; give a list of JobTarget(job_id, generation, revision)")
    if not 1 <= len(targets) <= TARGETS_MAX:
        message = f"one command takes 1 to {TARGETS_MAX} jobs, these are {len(targets)}; send several commands"
        raise InvalidArgument("batch_too_large", message)
    seen: set[bytes] = set()
    for target in targets:
        _check_target(target)
        if target.job_id in seen:
            raise _refused(f"job {id_text(target.job_id)} is named twice; one command does one thing to a job")
        seen.add(target.job_id)


def _check_target(target: object) -> None:
    if not isinstance(target, JobTarget):
        raise _refused(
            f"a target is {type(target).__name__}; give JobTarget(job_id, generation, revision), or rw.get(…).target"
        )
    if not isinstance(target.job_id, bytes) or len(target.job_id) != 16:
        raise InvalidArgument(
            "invalid_id", f"a target's job_id is 16 bytes, as JobTarget.of makes them; this is {target.job_id!r}"
        )
    for name, number in (("generation", target.generation), ("revision", target.revision)):
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < 2**31:
            raise _refused(f"a target's {name} is a whole number from 1, this is {number!r}; rw.get(…).target has it")


def _check_text(what: str, text: Any, most: int) -> None:
    """Text for people to read later: some, not too much, nothing that a terminal or a store would stumble over."""
    if not isinstance(text, str):
        raise _refused(f"{what} is {type(text).__name__}; give text")
    if not text.strip() or len(text) > most:
        raise _refused(f"{what} has {len(text)} characters; 1 to {most:,} are allowed, not all of them blank")
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t":
            raise _refused(f"{what} holds the control character U+{ord(character):04X}; leave it out")


def _refused(message: str) -> InvalidArgument:
    return InvalidArgument("invalid_argument", message)
