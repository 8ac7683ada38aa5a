"""The kinds of commands: ones that answer in every mode, and ones that do so from a desk. It loads click alone; what a
command needs to run is loaded when it runs.

What a command needs and answers stands with it as data, from which ``runwick describe`` is made.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from runwick.cli.modes import mode_options

PLACE: Final = ("app", "app_dir", "connection_env", "application", "context", "url", "user", "secret_stdin")
"""Options of a desk's command that say whose desk it is."""

_SECTIONS: Final = {
    **dict.fromkeys(PLACE, "Where it works (by default on the current context's server)"),
    **dict.fromkeys(("output", "agent"), "How it tells"),
}
"""Under which heading ``--help`` shows an option; all others are the command's own."""


class Topic(click.Group):
    """A group of commands. An option that stands in front of its command is answered with where it goes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what stands before the command."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as refused:
            takers = self.takers(refused.option_name)
            if not takers:
                raise
            name = "list" if "list" in takers else takers[0]
            option = refused.option_name
            raise click.UsageError(
                f"{option} goes behind a command: {ctx.command_path} {name} {option} …", ctx
            ) from None

    def takers(self, option: str) -> list[str]:
        """The names of its commands that have this option."""
        commands = self.commands.items()
        return [name for name, command in commands if any(option in parameter.opts for parameter in command.params)]


class AnsweringCommand(click.Command):
    """A command whose callback returns an `Answer`.

    Args:
        result: the name of the body that it answers, of `runwick.management.bodies` or `runwick.cli.results`.
        permission: what the caller needs; None: nothing but access.
        is_stream: it answers item by item.
    """

    has_modes: Final = True
    changes: bool = False
    expected: Sequence[str] = ()

    def __init__(
        self,
        name: str | None,
        *,
        result: str,
        permission: str | None = None,
        is_stream: bool = False,
        params: Sequence[click.Parameter] = (),
        **attributes: Any,
    ) -> None:
        super().__init__(name, params=[*params, *mode_options()], **attributes)
        self.result = result
        self.permission = permission
        self.is_stream = is_stream

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options first, then those that many commands share."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(_SECTIONS.get(parameter.name or "", "Options"), []).append(record)
        for title in dict.fromkeys(["Options", *sections]):
            if title in sections:
                with formatter.section(title):
                    formatter.write_dl(sections[title])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the callback and tell its answer, or what it was refused."""
        from runwick.cli.running import run_plain

        ctx.exit(run_plain(self, ctx))


class DeskCommand(AnsweringCommand):
    """A command whose callback is async and takes an `Operation` first: the desk, and who asks for what and why.

    Args:
        permission, result, is_stream: as for `AnsweringCommand`.
        changes: something is changed or revealed: it takes ``--reason`` and ``--command-id``.
        expected: of ``generation`` and ``revision``, which the target must still have.
        read_by: the command that tells them, with the names of this one's arguments in braces: ``("jobs get",
            "{job_id}")``.
        target: how revisions name what is changed: ``job:{job_id}``.
    """

    def __init__(
        self,
        name: str | None,
        *,
        permission: str,
        changes: bool = False,
        expected: Sequence[str] = (),
        read_by: Sequence[str] = (),
        target: str = "",
        params: Sequence[click.Parameter] = (),
        **attributes: Any,
    ) -> None:
        own = [*params, *_expected_options(expected), *(_change_options() if changes else []), *_place_options()]
        super().__init__(name, permission=permission, params=own, **attributes)
        self.changes = changes
        self.expected = expected
        self.read_by = read_by
        self._target = target

    def target(self, arguments: Mapping[str, Any]) -> str:
        """How revisions name what these arguments are about."""
        return self._target.format(**arguments)

    def reads(self, arguments: Mapping[str, Any]) -> list[str]:
        """The words of the command that tells how the target of these arguments stands."""
        return [word.format(**arguments) for word in self.read_by]

    def invoke(self, ctx: click.Context) -> Any:
        """Open the desk, run the callback and tell its answer, or what it was refused."""
        from runwick.cli.at_desk import run_at_desk

        ctx.exit(run_at_desk(self, ctx))


def _expected_options(expected: Sequence[str]) -> list[click.Parameter]:
    return [
        click.Option(
            [f"--expected-{what}"],
            type=click.IntRange(min=0),
            metavar="NUMBER",
            help=f"The {what} as you last saw it; without it the target is read first. Agents must give it.",
        )
        for what in expected
    ]


def _change_options() -> list[click.Parameter]:
    return [
        click.Option(["--reason"], metavar="TEXT", help="Why, for the audit trail."),
        click.Option(
            ["--command-id"],
            metavar="UUID",
            help="Give it again to send the same command again: it is done once. By default a new one.",
        ),
    ]


def _place_options() -> list[click.Parameter]:
    return [
        click.Option(["--app"], metavar="MODULE[:ATTRIBUTE]", help="Work on the store of this application."),
        click.Option(
            ["--app-dir"],
            metavar="DIRECTORY",
            default=".",
            type=click.Path(exists=True, file_okay=False),
            help="Comes first on the import path instead of the current directory.",
        ),
        click.Option(
            ["--connection-env"],
            metavar="NAME",
            help="Work on the store whose URL this environment variable holds; with --application.",
        ),
        click.Option(["--application"], metavar="NAME", help="With --connection-env: whose jobs."),
        click.Option(["--context"], metavar="NAME", help="Work on this saved server instead of the current one."),
        click.Option(["--url"], metavar="URL", help="Work on this server, with --user or a bearer token."),
        click.Option(["--user"], metavar="NAME", help="With --url: sign in with a password, as this user."),
        click.Option(["--secret-stdin"], is_flag=True, help="Read password or token from standard input."),
    ]
