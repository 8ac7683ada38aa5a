"""What the commands that run a worker, `runwick worker` and `runwick-supervise`, take and answer alike."""

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from runwick.cli.application import app_dir_option
from runwick.cli.reporter import JsonReporter, Reporter, TextReporter
from runwick.config.durations import parse_duration
from runwick.config.sources import named_between_commas
from runwick.contracts.errors import InvalidArgument

F = TypeVar("F", bound=Callable[..., Any])

STOPPED: Final = 0
FAILED: Final = 1
"""With ``--until-empty``: a job of this run ended failed. Otherwise: the worker could not go on, and says why."""


class DurationType(click.ParamType[float]):
    """``250ms``, ``15s``, ``2min``, ``24h``; gives seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return parse_duration(str(value)).total_seconds()
        except InvalidArgument as refused:
            self.fail(refused.message, param, ctx)


def names_given(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """The names between the commas, each once."""
    return None if value is None else named_between_commas(value)


def reporter_for(ctx: click.Context, param: click.Parameter, value: str) -> Reporter:
    """What tells people, or machines, on standard output."""
    return JsonReporter(sys.stdout) if value == "json" else TextReporter(sys.stdout)


_OPTIONS = (
    click.argument("target", metavar="MODULE[:ATTRIBUTE]"),
    app_dir_option,
    click.option(
        "--queues", metavar="A,B", callback=names_given, help="Serve only these of the queues that the pools serve."
    ),
    click.option(
        "--run-dir",
        metavar="DIRECTORY",
        help="Where run files lie, by which the next start on this host recovers at once what a killed worker left.",
    ),
    click.option("--check", is_flag=True, help="Check configuration, application and store; start nothing."),
    click.option(
        "--until-empty",
        is_flag=True,
        help="End when no job that this worker may run is due, retrying, handed over or running.",
    ),
    click.option(
        "--log-format",
        "reporter",
        type=click.Choice(["text", "json"]),
        default="text",
        callback=reporter_for,
        help="For people, or for machines.",
    ),
    click.option(
        "--progress-interval",
        type=DurationType(),
        default="5s",
        show_default=True,
        help="How often the line of progress comes.",
    ),
)


def worker_options(command: F) -> F:
    """Give a command the application as its argument, and the options that every worker has."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
