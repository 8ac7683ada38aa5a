"""Who is told: people, programs that read the API's JSON, or agents that read envelopes."""

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import click
import msgspec

from runwick.cli.answers import Answer, CliPart, Envelope, ErrorBody, ErrorPart, NextAction, Seen
from runwick.cli.failures import REFUSED, error_of, error_with, exit_status_of, exit_status_of_code
from runwick.cli.modes import Mode
from runwick.cli.refusals import tell
from runwick.cli.tables import terminal_text
from runwick.version import __version__

After = Callable[[ErrorPart], tuple[Mapping[str, Seen], Sequence[NextAction]]]
"""From what was refused to how the target stands now, and the commands that may be worth running next."""


class Teller(Protocol):
    """Tells what one command found."""

    command: str
    command_id: str | None
    cli: CliPart

    def answer(self, answer: Answer) -> int:
        """The command's answer; returns the exit status."""
        ...

    def item(self, answer: Answer) -> None:
        """One of many."""
        ...

    def end(self, answer: Answer) -> int:
        """That there are no more; returns the exit status."""
        ...

    def note(self, text: str) -> None:
        """Something beside the answer, for people."""
        ...

    def refuse(self, failure: Exception, after: "After | None" = None) -> int:
        """What was refused, and for agents what comes after; returns the exit status. To people it raises wrong usage,
        and what is a fault of this program."""
        ...


def teller_for(mode: Mode, command: str, *, is_stream: bool = False) -> Teller:
    """Who tells in this mode.

    Args:
        mode: to whom.
        command: as it is typed, without the program: ``jobs get``.
        is_stream: it answers item by item.
    """
    match mode:
        case Mode.AGENT:
            return AgentTeller(command, is_stream=is_stream)
        case Mode.JSON:
            return JsonTeller(command)
        case _:
            return PeopleTeller(command)


class PeopleTeller:
    """Plain text on standard output; what is no answer goes to standard error."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.command_id: str | None = None
        self.cli = CliPart(version=__version__)

    def answer(self, answer: Answer) -> int:
        self.item(answer)
        return _failed(answer, self.note)

    def item(self, answer: Answer) -> None:
        if text := answer.text():
            click.echo(text)

    def end(self, answer: Answer) -> int:
        return self.answer(answer)

    def note(self, text: str) -> None:
        click.echo(terminal_text(text), err=True)

    def refuse(self, failure: Exception, after: "After | None" = None) -> int:
        status = exit_status_of(failure)
        if status is None or isinstance(failure, click.ClickException):
            raise failure
        tell(failure)
        return status


class JsonTeller:
    """Bodies as the API has them, one a line; so are errors, on standard output too."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.command_id: str | None = None
        self.cli = CliPart(version=__version__)

    def answer(self, answer: Answer) -> int:
        self.item(answer)
        return _failed(answer, self.note)

    def item(self, answer: Answer) -> None:
        _print(answer.body)

    def end(self, answer: Answer) -> int:
        return 0 if answer.failure is None else exit_status_of_code(answer.failure.code)

    def note(self, text: str) -> None:
        click.echo(terminal_text(text), err=True)

    def refuse(self, failure: Exception, after: "After | None" = None) -> int:
        error, status = _refused(failure, self.command_id)
        _print(ErrorBody(error))
        return status


class AgentTeller:
    """Envelopes, and nothing else."""

    def __init__(self, command: str, *, is_stream: bool) -> None:
        self.command = command
        self.command_id: str | None = None
        self._is_stream = is_stream
        self.cli = CliPart(version=__version__)

    def answer(self, answer: Answer) -> int:
        self._tell(answer)
        return 0 if answer.failure is None else exit_status_of_code(answer.failure.code)

    def item(self, answer: Answer) -> None:
        self._tell(answer, "item")

    def end(self, answer: Answer) -> int:
        self._tell(answer, "end")
        return 0 if answer.failure is None else exit_status_of_code(answer.failure.code)

    def note(self, text: str) -> None:
        """Nobody reads it."""

    def refuse(self, failure: Exception, after: "After | None" = None) -> int:
        error, status = _refused(failure, self.command_id)
        seen, actions = ({}, ()) if after is None else after(error)
        told = Answer(body=None, text=str, failure=error, revisions=seen, next_actions=actions)
        self._tell(told, "end" if self._is_stream else msgspec.UNSET)
        return status

    def _tell(self, answer: Answer, stream: str | msgspec.UnsetType = msgspec.UNSET) -> None:
        _print(
            Envelope(
                command=self.command,
                ok=answer.failure is None,
                result=answer.body,
                error=answer.failure,
                command_id=self.command_id,
                revisions=answer.revisions,
                next_actions=answer.next_actions,
                cli=self.cli,
                stream=stream,
            )
        )


def _failed(answer: Answer, note: Any) -> int:
    if answer.failure is None:
        return 0
    note(f"{answer.failure.code}: {answer.failure.message}")
    return exit_status_of_code(answer.failure.code)


def _refused(failure: Exception, command_id: str | None) -> tuple[ErrorPart, int]:
    """What is told and the exit status; a fault of this program is told too, for somebody waits for an answer."""
    error, status = error_of(failure, command_id), exit_status_of(failure)
    if error is None or status is None:
        traceback.print_exception(failure, file=sys.stderr)
        error = error_with("internal_error", f"runwick failed: {type(failure).__name__}", command_id)
        status = REFUSED
    return error, status


def _print(body: Any) -> None:
    click.echo(msgspec.json.encode(body).decode())
