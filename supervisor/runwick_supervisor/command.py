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
from typing import NoReturn, TypeVar

import click

from runwick.cli.reporter import Reporter
from runwick.cli.run_dir import run_dir_of
from runwick.cli.worker_options import FAILED, names_given, worker_options
from runwick.config.layout import lay_out
from runwick.config.numeric import THREADS_USUAL, parse_numeric_threads
from runwick.config.sources import EXECUTORS, Environment, read_environment
from runwick.contracts.errors import ConfigurationError, InvalidArgument, Problem, StoreError
from runwick.version import __version__
from runwick_supervisor.cores import usable_cores
from runwick_supervisor.planning import Orders
from runwick_supervisor.supervision import supervise

T = TypeVar("T")


class NumericThreadsType(click.ParamType[int]):
    """``1`` to ``1024``, or ``inherit``; gives what `parse_numeric_threads` does."""

    name = "threads"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return parse_numeric_threads(str(value))
        except InvalidArgument as refused:
            self.fail(refused.message, param, ctx)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="runwick-supervise %(version)s")
@worker_options
@click.option(
    "--advise",
    is_flag=True,
    help="Read what runs have cost and say how to run them better, and what limits them now; start nothing.",
)
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
@click.option(
    "--numeric-threads",
    type=NumericThreadsType(),
    metavar="N|inherit",
    help="Threads of numeric libraries (OpenMP, OpenBLAS, MKL, NumExpr, Numba, Rayon, Polars) in each executor, where "
    "the environment does not set a library's own variable; inherit sets none.  [default: 1]",
)
@click.option(
    "--preload",
    metavar="MODULE,MODULE",
    callback=names_given,
    help="Import these after the application, once, for every executor to share.",
)
@click.option(
    "--pin/--no-pin", default=None, help="Keep each executor, with what it starts, to one core, each in turn."
)
@click.option(
    "--nice",
    type=click.IntRange(0, 19),
    help="How far executors, with what they start, step back for other processes.",
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
    advise: bool,
    executors: int | None,
    executors_per_core: float | None,
    numeric_threads: int | None,
    preload: tuple[str, ...] | None,
    pin: bool | None,
    nice: int | None,
) -> None:
    """Run the jobs of an application on forked executors, one handler at a time in each.

    TERM or Ctrl-C drains: nothing new begins, running handlers may end. A second one asks them to stop, a third one
    kills them. HUP loads the application anew while work goes on. USR1 prints the stack of everything that runs.
    """
    if check and advise:
        raise click.UsageError("--check and --advise are two questions. Give one of them.")
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
        advise=advise,
        until_empty=until_empty,
        progress_interval_s=progress_interval,
        numeric_threads=_said(numeric_threads, environment.numeric_threads, THREADS_USUAL),
        preload=_said(preload, environment.preload, ()),
        executor_options={name: said for name, said in (("pin", pin), ("nice", nice)) if said is not None},
        run_dir=run_dir_of(run_dir, make=not (check or advise)),
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


def _said(by_option: T | None, by_environment: T | None, usual: T) -> T:
    """The command line comes before the environment, and that before what is usual."""
    return next((said for said in (by_option, by_environment) if said is not None), usual)


def _refuse(problems: Sequence[Problem]) -> NoReturn:
    click.echo(lay_out(problems), err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
