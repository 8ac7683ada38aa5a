"""What a command answers, before it is told to anybody, and the envelope in which an agent gets it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

ENVELOPE_VERSION: Final = 1


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a target stood when it was last seen, as the next change wants it."""

    generation: int | None = None
    revision: int | None = None


class NextAction(msgspec.Struct, frozen=True):
    """A command that may be worth running next. It is a suggestion: nobody asked whether the caller may."""

    command: str
    """``jobs get``."""
    argv: Sequence[str]
    """The whole command line."""
    reason: str


class ErrorPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why a command was refused. It has the members of the API's errors."""

    code: str
    """Stable; ``describe`` lists them all."""
    message: str
    retryable: bool
    """The same command can succeed later."""
    hint: str
    """What to do."""
    command_id: str | msgspec.UnsetType = msgspec.UNSET
    actual_generation: int | msgspec.UnsetType = msgspec.UNSET
    """How the target stands now, like the next two."""
    actual_revision: int | msgspec.UnsetType = msgspec.UNSET
    actual_state: str | msgspec.UnsetType = msgspec.UNSET
    incident: str | msgspec.UnsetType = msgspec.UNSET
    """Under which the server's log has more."""


class ErrorBody(msgspec.Struct, frozen=True):
    """What a refused command tells programs."""

    error: ErrorPart


class CliPart(msgspec.Struct, frozen=True, kw_only=True):
    """Where a command worked."""

    version: str
    context: str | None = None
    url: str | None = None
    app: str | None = None


class Envelope(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an agent gets: one of these on one line for each command, and of a stream one for each item and one for its
    end."""

    schema_version: int = ENVELOPE_VERSION
    command: str
    ok: bool
    result: Any
    """What ``--output json`` prints."""
    error: ErrorPart | None
    command_id: str | None
    """Of a change; the same command with it is done once."""
    revisions: Mapping[str, Seen]
    """Of everything that was seen, by ``job:ID``, ``queue:NAME`` or ``scope:KIND/KEY``."""
    next_actions: Sequence[NextAction]
    cli: CliPart
    stream: str | msgspec.UnsetType = msgspec.UNSET
    """``item`` or ``end``, of commands that answer item by item."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a command found or did."""

    body: Any
    """For programs; None of a stream's end."""
    text: Callable[[], str]
    """For people, without a newline at its end. It is made only for them."""
    revisions: Mapping[str, Seen] = {}
    next_actions: Sequence[NextAction] = ()
    failure: ErrorPart | None = None
    """What went wrong although there is an answer: some of many were refused."""


def text_of(text: str) -> Callable[[], str]:
    """A text that is made already."""
    return lambda: text
