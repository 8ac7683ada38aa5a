"""``runwick-supervise``: runs an application's jobs on forked executors.

    command line, environment ─▶ zygote ─▶ manifest ─▶ store ─┬─ problems, all at once ─▶ exit 2
                                                              └─ worker on the executors ─▶ signals drain it ─▶ exit
                                                                   (what each signal does: `hearing`)

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

from runwick.cli.reporter import Reporter
from runwick.cli.run_dir import run_dir_of
from runwick.cli.worker_options import FAILED, worker_options
from runwick.config.layout import lay_out
from runwick.config.sources import EXECUTORS, Environment, read_environment
from runwick.contracts.errors import ConfigurationError, Problem, StoreError
from runwick.version import __version__
from runwick_supervisor.cores import usable_cores
from runwick_supervisor.planning import Orders
from runwick_supervisor.supervision import supervise


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="runwick-supervise %(version)s")
@worker_options
@click.option(
    "--executors",
    type=click.IntRange(1, 1024),
    help="How many executors the one pool has; by default one per usable core.",
)
@click.option(
    "--executors-per-core",
    type=click.FloatRange(0, 64, min_open=True),
    help="How many executors for each usable core, rounded up.",
)
def main(
    target: str,
    app_dir: str,
    queues: tuple[str, ...] | None,
    check: bool,
    until_empty: bool,
    reporter: Reporter,
    progress_interval: float,
    run_dir: str | None,
    executors: int | None,
    executors_per_core: float | None,
) -> None:
    """Run the jobs of an application on forked executors, one handler at a time in each.

    TERM or Ctrl-C drains: nothing new begins, running handlers may end. A second one asks them to stop, a third one
    kills them. HUP loads the application anew while work goes on. USR1 prints the stack of everything that runs.
    """
    if sys.platform != "linux":
        _refuse([Problem("platform_unsupported", sys.platform, "runwick-supervise runs on Linux only.")])
    cores = usable_cores()
    environment = read_environment(os.environ)
    number, said_by = _executors(executors, executors_per_core, environment, cores)
    orders = Orders(
        target=target,
        app_dir=str(Path(app_dir).resolve()),
        executors=number,
        executors_by=said_by,
        cores=cores,
        queues=queues,
        check_only=check,
        until_empty=until_empty,
        progress_interval_s=progress_interval,
        run_dir=run_dir_of(run_dir, make=not check),
    )
    problems = list(environment.problems)
    if orders.run_dir.problem is not None:
        problems.append(orders.run_dir.problem)
    if executors is not None and executors_per_core is not None:
        problems.append(
            Problem("invalid_pool", "--executors", "given together with --executors-per-core. Give one of them.")
        )
    try:
        status = asyncio.run(supervise(orders, problems, reporter))
    except ConfigurationError as refused:
        _refuse(refused.problems)
    except StoreError as refused:
        click.echo(f"runwick-supervise cannot start: {refused}", err=True)
        sys.exit(FAILED)
    sys.exit(status)


def _executors(
    number: int | None, per_core: float | None, environment: Environment, cores: int
) -> tuple[int | None, str]:
    """How many executors were asked for, if anybody did, and who: the command line comes before the environment."""
    if number is not None:
        return number, "--executors"
    if per_core is not None:
        return math.ceil(per_core * cores), "--executors-per-core"
    return environment.executors, EXECUTORS


def _refuse(problems: Sequence[Problem]) -> NoReturn:
    click.echo(lay_out(problems), err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
