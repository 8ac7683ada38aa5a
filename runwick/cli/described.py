"""The command line as data: commands with arguments, options, permission and a JSON Schema of what each answers."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from runwick.cli import results
from runwick.cli.answers import Envelope
from runwick.cli.commands import AnsweringCommand, DeskCommand
from runwick.cli.failures import EXIT_STATUSES
from runwick.contracts.codes import CODES
from runwick.management import bodies
from runwick.management.bodies import Body
from runwick.version import __version__


class ParameterBody(Body, frozen=True, kw_only=True, omit_defaults=True):
    """One argument or option. Members that say nothing are left out."""

    name: str
    flags: tuple[str, ...] = ()
    """How it is written; none for an argument."""
    help: str | None = None
    takes: str
    """What kind of value; ``flag`` takes none."""
    choices: tuple[str, ...] | None = None
    is_required: bool = False
    is_required_by_agents: bool = False
    is_multiple: bool = False
    default: Any = None


class CommandBody(Body, frozen=True, kw_only=True):
    """One command."""

    name: str
    """As it is typed: ``jobs get``."""
    summary: str
    help: str
    arguments: tuple[ParameterBody, ...]
    options: tuple[ParameterBody, ...]
    permission: str | None
    """What the caller needs; null: nothing but access."""
    changes: bool
    """It changes or reveals something, and takes ``--command-id``."""
    is_stream: bool
    """It answers in one line for each item."""
    has_agent_mode: bool
    """False: it is for people, or runs until it is stopped."""
    result: Any
    """A JSON Schema; null without an agent mode."""


class CodeBody(Body, frozen=True, kw_only=True):
    code: str
    retryable: bool
    hint: str


class DescribeBody(Body, frozen=True, kw_only=True):
    version: str
    commands: tuple[CommandBody, ...]
    envelope: Any
    """The JSON Schema of what every command prints in agent mode."""
    components: Any
    """The schemas to which the others refer, below ``#/components/``."""
    errors: tuple[CodeBody, ...]
    exit_codes: dict[str, str]


def described(commands: Sequence[tuple[str, click.Command]]) -> DescribeBody:
    """All of it, for these commands."""
    types = [result_type(each.result) for _, each in commands if isinstance(each, AnsweringCommand)]
    schemas, components = msgspec.json.schema_components([Envelope, *types], ref_template="#/components/{name}")
    envelope, *rest = schemas
    left = iter(rest)
    shown = [
        _command(name, each, next(left) if isinstance(each, AnsweringCommand) else None) for name, each in commands
    ]
    return DescribeBody(
        version=__version__,
        commands=tuple(shown),
        envelope=envelope,
        components=components,
        errors=tuple(CodeBody(code=row.code, retryable=row.retryable, hint=row.hint) for row in CODES.values()),
        exit_codes={str(status): text for status, text in EXIT_STATUSES.items()},
    )


def result_type(name: str) -> type:
    """The body of that name."""
    if name == DescribeBody.__name__:
        return DescribeBody
    found: type = getattr(results, name, None) or getattr(bodies, name)
    return found


def _command(name: str, command: click.Command, schema: Any) -> CommandBody:
    text = command.help or ""
    summary, *_ = text.splitlines() or [""]
    answers = isinstance(command, AnsweringCommand)
    return CommandBody(
        name=name,
        summary=summary,
        help=text,
        arguments=tuple(_parameter(command, each) for each in command.params if isinstance(each, click.Argument)),
        options=tuple(_parameter(command, each) for each in command.params if isinstance(each, click.Option)),
        permission=command.permission if isinstance(command, AnsweringCommand) else None,
        changes=isinstance(command, AnsweringCommand) and command.changes,
        is_stream=isinstance(command, AnsweringCommand) and command.is_stream,
        has_agent_mode=answers,
        result=schema,
    )


def _parameter(command: click.Command, parameter: click.Parameter) -> ParameterBody:
    kind = parameter.type
    is_option = isinstance(parameter, click.Option)
    is_flag = isinstance(parameter, click.Option) and parameter.is_flag
    return ParameterBody(
        name=parameter.name or "",
        flags=(*parameter.opts, *parameter.secondary_opts) if is_option else (),
        help=getattr(parameter, "help", None),
        takes="flag" if is_flag else kind.name,
        choices=tuple(map(str, kind.choices)) if isinstance(kind, click.Choice) else None,
        is_required=parameter.required,
        is_required_by_agents=_is_required_by_agents(command, parameter),
        is_multiple=parameter.multiple or parameter.nargs != 1,
        default=_default_of(parameter),
    )


def _is_required_by_agents(command: click.Command, parameter: click.Parameter) -> bool:
    """Whether an option must be there in agent mode: what must be there anyway, and what the caller saw."""
    expected = command.expected if isinstance(command, DeskCommand) else ()
    return parameter.required or parameter.name in {f"expected_{what}" for what in expected}


def _default_of(parameter: click.Parameter) -> Any:
    """The value without the option, as it would be written; None where there is none."""
    value = parameter.to_info_dict().get("default")
    return value if isinstance(value, str | int | float) and value is not False else None
