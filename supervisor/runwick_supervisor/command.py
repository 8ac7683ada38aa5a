"""``runwick-supervise``: runs an application's jobs on forked executors.

    command line, environment ─▶ zygote ─▶ manifest ─▶ store ─┬─ problems, all at once ─▶ exit 2
                                                              └─ worker on the executors ─▶ signals drain it ─▶ exit

The parent never imports the application and never forks; it owns every store connection.
"""

import asyncio
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from runwick.config.durations import parse_duration
from runwick.config.layout import lay_out
from runwick.config.sources import Environment, read_environment
from runwick.contracts.errors import ConfigurationError, InvalidArgument, Problem
from runwick.version import __version__
from runwick_supervisor.cores import usable_cores
from runwick_supervisor.reporter import JsonReporter, Reporter, TextReporter
from runwick_supervisor.supervision import Orders, supervise


class DurationType(click.ParamType[float]):
    """``250ms``, ``15s``, ``2min``, ``24h``."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return parse_duration(str(value)).total_seconds()
        except InvalidArgument as refused:
            self.fail(refused.message, param, ctx)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="runwick-supervise %(version)s")
@click.argument("target", metavar="MODULE[:ATTRIBUTE]")
@click.option(
    "--app-dir",
    metavar="DIRECTORY",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    help="Comes first on the import path instead of the current directory.",
)
@click.option("--executors", type=click.IntRange(1, 1024), help="How many executors; by default one per usable core.")
@click.option(
    "--executors-per-core",
    type=click.FloatRange(0, 64, min_open=True),
    help="How many executors for each usable core, rounded up.",
)
@click.option("--queues", metavar="A,B", help="Serve only these of the pool's queues.")
@click.option("--check", is_flag=True, help="Check configuration, application and store; start nothing.")
@click.option(
    "--until-empty",
    is_flag=True,
    help="End when no job that this worker may run is due, retrying, handed over or running.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", help="For people, or for machines.")
@click.option(
    "--progress-interval",
    type=DurationType(),
    default="5s",
    show_default=True,
    help="How often the line of progress comes.",
)
def main(
    target: str,
    app_dir: str,
    executors: int | None,
    executors_per_core: float | None,
    queues: str | None,
    check: bool,
    until_empty: bool,
    log_format: str,
    progress_interval: float,
) -> None:
    """Run the jobs of an application on forked executors, one handler at a time in each.

    TERM or Ctrl-C drains: nothing new begins, running handlers may end. A second one kills them.
    """
    if sys.platform != "linux":
        _refuse([Problem("platform_unsupported", sys.platform, "runwick-supervise runs on Linux only.")])
    cores = usable_cores()
    environment = read_environment(os.environ)
    orders = Orders(
        target=target,
        app_dir=str(Path(app_dir).resolve()),
        executors=_executors(executors, executors_per_core, environment, cores),
        cores=cores,
        queues=None if queues is None else tuple(dict.fromkeys(filter(None, queues.split(",")))),
        check_only=check,
        until_empty=until_empty,
        progress_interval_s=progress_interval,
    )
    problems = list(environment.problems)
    if executors is not None and executors_per_core is not None:
        problems.append(
            Problem("invalid_pool", "--executors", "given together with --executors-per-core. Give one of them.")
        )
    reporter: Reporter = JsonReporter(sys.stdout) if log_format == "json" else TextReporter(sys.stdout, cores)
    try:
        status = asyncio.run(supervise(orders, problems, reporter))
    except ConfigurationError as refused:
        _refuse(refused.problems)
    sys.exit(status)


def _executors(number: int | None, per_core: float | None, environment: Environment, cores: int) -> int:
    """Command line before environment before one per usable core."""
    if number is not None:
        return number
    if per_core is not None:
        return math.ceil(per_core * cores)
    return environment.executors or cores


def _refuse(problems: Sequence[Problem]) -> NoReturn:
    click.echo(lay_out(problems), err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
