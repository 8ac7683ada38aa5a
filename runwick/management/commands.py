"""From what a caller gives to a command that a store may be asked: everything is checked before anything is sent."""

import unicodedata
import uuid
from collections.abc import Sequence
from typing import Any, Final

from runwick.contracts.controls import (
    TARGETS_MAX,
    ControlAction,
    ControlCommand,
    JobTarget,
    ManagementActor,
    SteerAction,
    SteerCommand,
)
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.identity import id_bytes, id_text
from runwick.contracts.limits import CAPACITY_MAX, KEY_MAX_BYTES, LimitKind
from runwick.contracts.names import JOB_NAME_MAX_CHARACTERS, name_problem
from runwick.contracts.revealing import AuditNote, RevealCommand, Secret

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
    _check_who_and_why(actor, reason)
    _check_targets(targets)
    return ControlCommand(
        action=action,
        command_id=id_bytes(command_id),
        application=application,
        actor=actor,
        reason=reason,
        targets=tuple(targets),
    )


def steer_command_of(
    action: SteerAction,
    application: str,
    kind: LimitKind,
    key: str,
    actor: ManagementActor,
    reason: str | None,
    command_id: "str | uuid.UUID | bytes",
    expected_revision: int,
    capacity: int | None = None,
) -> SteerCommand:
    """The command, checked.

    Raises:
        InvalidArgument: something in it cannot be (codes ``invalid_argument``, ``invalid_id``).
    """
    _check_who_and_why(actor, reason)
    check_key(kind, key)
    # A queue that nobody ever paused has revision 0.
    if not is_number(expected_revision, 0, 2**31 - 1):
        raise _refused(f"expected_revision is {expected_revision!r}; give the revision as it was last read")
    if action is SteerAction.SET_CAPACITY and not is_number(capacity, 1, CAPACITY_MAX):
        raise _refused(f"capacity is {capacity!r}; give a whole number from 1 to {CAPACITY_MAX:,}")
    return SteerCommand(
        action=action,
        command_id=id_bytes(command_id),
        application=application,
        actor=actor,
        reason=reason,
        kind=kind,
        key=key,
        expected_revision=expected_revision,
        capacity=capacity,
    )


def reveal_command_of(
    what: Secret | str,
    application: str,
    job_id: "str | uuid.UUID | bytes",
    attempt_id: "str | uuid.UUID | bytes | None",
    actor: ManagementActor,
    reason: str | None,
    command_id: "str | uuid.UUID | bytes",
) -> RevealCommand:
    """The command, checked.

    Raises:
        InvalidArgument: something in it cannot be (codes ``invalid_argument``, ``invalid_id``).
    """
    _check_who_and_why(actor, reason)
    secret = secret_of(what)
    is_of_job = secret in (Secret.PAYLOAD, Secret.RESULT)
    if is_of_job is not (attempt_id is None):
        whose = "the job's, so it takes no attempt_id" if is_of_job else "an attempt's, so it needs an attempt_id"
        raise _refused(f"{secret.value} is {whose}")
    return RevealCommand(
        what=secret,
        command_id=id_bytes(command_id),
        application=application,
        actor=actor,
        reason=reason,
        job_id=id_bytes(job_id),
        attempt_id=None if attempt_id is None else id_bytes(attempt_id),
    )


def note_of(actor: ManagementActor, reason: str | None) -> AuditNote:
    """Who dispatches a job by hand and why, checked.

    Raises:
        InvalidArgument: something in it cannot be (code ``invalid_argument``).
    """
    _check_who_and_why(actor, reason)
    return AuditNote(actor=actor, reason=reason)


def secret_of(what: Secret | str) -> Secret:
    """The secret that is meant.

    Raises:
        InvalidArgument: there is none of that name (code ``invalid_argument``).
    """
    try:
        return Secret(what)
    except ValueError:
        known = ", ".join(each.value for each in Secret)
        raise _refused(f"there is nothing called {what!r} to reveal; give one of {known}") from None


def limit_kind(kind: LimitKind | str) -> LimitKind:
    """The kind that is meant.

    Raises:
        InvalidArgument: there is none of that name (code ``invalid_argument``).
    """
    try:
        return LimitKind(kind)
    except ValueError:
        known = ", ".join(each.value for each in LimitKind)
        raise _refused(f"there is no kind of limit {kind!r}; give one of {known}") from None


def check_key(kind: LimitKind, key: str) -> None:
    """Go on if this may be what a limit of that kind is about.

    Raises:
        InvalidArgument: it may not (code ``invalid_argument``).
    """
    if kind is LimitKind.RESOURCE:
        size = len(key.encode("utf-8", "surrogatepass")) if isinstance(key, str) else 0
        if not 1 <= size <= KEY_MAX_BYTES or not is_storable(key):
            raise _refused(f"the key of a resource is {key!r}; give text of 1 to {KEY_MAX_BYTES} bytes, without NUL")
    elif kind is LimitKind.QUEUE and (problem := name_problem(key)) is not None:
        raise _refused(f"{key!r} is no queue's name: {problem}")
    elif kind is LimitKind.JOB_TYPE and (problem := name_problem(key, max_characters=JOB_NAME_MAX_CHARACTERS)):
        raise _refused(f"{key!r} is no job's name: {problem}")


def is_storable(text: str) -> bool:
    """Whether every store can keep it: neither NUL nor half a character. What is not, nothing there can be called."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def is_number(value: object, least: int, most: int) -> bool:
    """Whether it is a whole number in these bounds, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _check_who_and_why(actor: object, reason: object) -> None:
    _check_actor(actor)
    if reason is not None:
        _check_text("reason", reason, REASON_MAX_CHARACTERS)


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
