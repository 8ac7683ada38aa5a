"""Runs one command at a desk: opens the desk, and tells the command's answer or what it was refused."""

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from runwick.cli.again import words_again
from runwick.cli.answers import Answer, CliPart, ErrorPart, NextAction, Seen
from runwick.cli.commands import PLACE, DeskCommand
from runwick.cli.desks import Change, OperatorDesk
from runwick.cli.modes import Mode, chosen_mode
from runwick.cli.places import Place, open_desk
from runwick.cli.running import refused, typed_name
from runwick.cli.tellers import Teller, teller_for
from runwick.contracts.errors import ControlOutcomeUnknown, InvalidArgument
from runwick.contracts.identity import id_bytes, id_text
from runwick.runtime.ambient import SystemIds
from runwick.version import __version__

_READ_AGAIN: Final = frozenset({"usage_error", "stale_generation", "stale_revision", "invalid_state"})


class Operation:
    """One call of a command that works at a desk.

    Args:
        desk: does what is asked.
        teller: is told.
        mode: to whom it is told.
        place: where the desk is.
        command_id: of a change.
        reason: why.
        expected: how the target must still stand, as far as it was said.
    """

    def __init__(
        self,
        desk: OperatorDesk,
        teller: Teller,
        mode: Mode,
        place: Place,
        command_id: str | None,
        reason: str | None,
        expected: Seen,
    ) -> None:
        self.desk = desk
        self.teller = teller
        self.mode = mode
        self.place = place
        self._command_id = command_id
        self._reason = reason
        self.expected = expected
        self.interrupted: Callable[[], Answer] = functools.partial(Answer, body=None, text=str)
        """How a stream ends at Ctrl-C."""

    @property
    def change(self) -> Change:
        """What a change carries."""
        assert self._command_id is not None, "the command is none that changes anything"
        return Change(command_id=self._command_id, reason=self._reason)

    def next(self, command: str, *arguments: str, reason: str) -> NextAction:
        """A command that may be worth running next, in the same place."""
        return next_action(self.place, command, *arguments, reason=reason)


def next_action(place: Place, command: str, *arguments: str, reason: str) -> NextAction:
    """A command that may be worth running next, in this place."""
    argv = ["runwick", "--agent", *command.split(), *arguments, *place.arguments]
    return NextAction(command, argv, reason)


def run_at_desk(command: DeskCommand, ctx: click.Context) -> int:
    """Run a command at its desk; returns the exit status."""
    mode, own = chosen_mode(ctx), dict(ctx.params)
    place = Place(**{name: own.pop(name) for name in PLACE})
    expected = Seen(**{what: own.pop(f"expected_{what}") for what in command.expected})
    reason, given_id = own.pop("reason", None), own.pop("command_id", None)
    teller = teller_for(mode, typed_name(ctx), is_stream=command.is_stream)
    teller.cli = CliPart(version=__version__, context=place.context, app=place.app or place.application)
    try:
        place.check()
    except Exception as failure:
        return refused(teller, failure)
    try:
        if command.changes:
            teller.command_id = _command_id(given_id)
        _check_expected(command, mode, expected)
        with open_desk(place, mode) as (desk, teller.cli):
            found = place.found(teller.cli.context) if mode is Mode.AGENT else place
            operation = Operation(desk, teller, mode, found, teller.command_id, reason, expected)
            return asyncio.run(_run(command, operation, own))
    except KeyboardInterrupt:
        if teller.command_id is None:
            raise
        message = "stopped by Ctrl-C: it may or may not have been done"
        stopped = ControlOutcomeUnknown("outcome_unknown", message, teller.command_id)
        return refused(teller, stopped, functools.partial(_after, command, ctx, place, own))
    except Exception as failure:
        return refused(teller, failure, functools.partial(_after, command, ctx, place, own))


async def _run(command: DeskCommand, operation: Operation, own: dict[str, Any]) -> int:
    assert command.callback is not None
    tell = operation.teller.end if command.is_stream else operation.teller.answer
    try:
        return tell(await command.callback(operation, **own))
    except asyncio.CancelledError:
        if command.is_stream:
            tell(operation.interrupted())
        raise
    finally:
        await operation.desk.aclose()


def _after(
    command: DeskCommand, ctx: click.Context, place: Place, own: Mapping[str, Any], error: ErrorPart
) -> tuple[Mapping[str, Seen], Sequence[NextAction]]:
    """How the target stands now, and what may be worth running next: the read before a change that did not fit, the
    same change where nobody knows what became of it."""
    if error.code == "outcome_unknown" and error.command_id:
        words = [*words_again(ctx, but=("command_id",)), "--command-id", error.command_id]
        return {}, [next_action(place, typed_name(ctx), *words, reason="Send it again: it is done once.")]
    seen = (
        {}
        if not error.actual_revision
        else {command.target(own): Seen(error.actual_generation or None, error.actual_revision)}
    )
    if error.code not in _READ_AGAIN or not command.read_by:
        return seen, []
    reason = "Read how the target stands, and whether it is still the one to change."
    return seen, [next_action(place, *command.reads(own), reason=reason)]


def _command_id(given: str | None) -> str:
    if given is None:
        return id_text(SystemIds().ordered())
    try:
        return id_text(id_bytes(given))
    except InvalidArgument as refused:
        raise click.UsageError(f"--command-id: {refused.message}") from None


def _check_expected(command: DeskCommand, mode: Mode, expected: Seen) -> None:
    """An agent says what it saw, so that it changes nothing that it never looked at."""
    missing = [what for what in command.expected if getattr(expected, what) is None]
    if mode is Mode.AGENT and missing:
        options = " and ".join(f"--expected-{what}" for what in missing)
        raise click.UsageError(f"Agents must give {options}.")
