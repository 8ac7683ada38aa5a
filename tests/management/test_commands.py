"""A command is checked whole before anything is sent."""

import uuid
from typing import Any

import pytest

from runwick import InvalidArgument, JobTarget, ManagementActor
from runwick.contracts.controls import ControlAction, ControlCommand
from runwick.management.commands import command_of

ACTOR = ManagementActor("ops-bot", "Ops bot", "service")
TARGET = JobTarget(bytes(15) + b"\1", 1, 7)
ID = uuid.UUID("0199c0de-0000-7000-8000-00000000000a")


def make(**changes: Any) -> ControlCommand:
    given: dict[str, Any] = {"targets": [TARGET], "actor": ACTOR, "reason": "twice by mistake", "command_id": ID}
    return command_of(ControlAction.CANCEL, "shop", **{**given, **changes})


def test_a_command_carries_what_was_given() -> None:
    command = make()
    assert command == ControlCommand(
        action=ControlAction.CANCEL,
        command_id=ID.bytes,
        application="shop",
        actor=ACTOR,
        reason="twice by mistake",
        targets=(TARGET,),
    )
    assert make(command_id=str(ID)) == command == make(command_id=ID.bytes)
    assert make(reason=None).reason is None
    assert len(make(targets=[JobTarget(bytes([0] * 15 + [n]), 1, 1) for n in range(100)]).targets) == 100


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"actor": "ops-bot"}, "invalid_argument", r"actor is str; give ManagementActor"),
        ({"actor": ManagementActor("", "Ops bot", "service")}, "invalid_argument", r"has 0 characters; 1 to 256"),
        ({"actor": ManagementActor("a" * 257, "Ops", "x")}, "invalid_argument", r"subject has 257 characters"),
        ({"actor": ManagementActor("ops", "O\x1bps", "service")}, "invalid_argument", r"control character U\+001B"),
        ({"actor": ManagementActor("ops", "O\ud800", "service")}, "invalid_argument", r"control character U\+D800"),
        ({"actor": ManagementActor("ops", 7, "service")}, "invalid_argument", r"display name is int; give text"),  # type: ignore[arg-type]
        ({"actor": ManagementActor("ops", "Ops", "a scheme")}, "invalid_argument", r"'a scheme' is no name"),
        ({"actor": ManagementActor("ops", "Ops", None)}, "invalid_argument", r"scheme None is no name"),  # type: ignore[arg-type]
        ({"reason": "x" * 1_001}, "invalid_argument", r"reason has 1001 characters; 1 to 1,000"),
        ({"reason": "  "}, "invalid_argument", r"not all of them blank"),
        ({"reason": "a\0b"}, "invalid_argument", r"U\+0000"),
        ({"targets": []}, "batch_too_large", r"takes 1 to 100 jobs, these are 0"),
        ({"targets": [TARGET] * 101}, "batch_too_large", r"these are 101"),
        ({"targets": [TARGET, TARGET]}, "invalid_argument", r"is named twice"),
        ({"targets": TARGET}, "invalid_argument", r"targets are JobTarget; give a list"),
        ({"targets": ["x"]}, "invalid_argument", r"a target is str; give JobTarget"),
        ({"targets": [JobTarget("x", 1, 1)]}, "invalid_id", r"16 bytes, as JobTarget.of makes them"),  # type: ignore[arg-type]
        ({"targets": [JobTarget(bytes(16), 0, 1)]}, "invalid_argument", r"generation is a whole number from 1"),
        ({"targets": [JobTarget(bytes(16), 1, True)]}, "invalid_argument", r"revision is a whole number from 1"),
        ({"targets": [JobTarget(bytes(16), 1, 2**31)]}, "invalid_argument", r"revision is a whole number from 1"),
        ({"command_id": "x"}, "invalid_id", r"an id is a UUID"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_one_sentence(changes: Any, code: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as caught:
        make(**changes)
    assert caught.value.code == code


def test_a_target_is_made_of_text_too() -> None:
    assert JobTarget.of(str(ID), 2, 3) == JobTarget(ID.bytes, 2, 3)
    with pytest.raises(InvalidArgument, match="an id is a UUID"):
        JobTarget.of("7", 1, 1)
