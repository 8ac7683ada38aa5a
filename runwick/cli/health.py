"""``runwick health``: how the workers of this user on this host are, for probes and people. It loads no application.

status files of living workers ─▶ one check each ─▶ exit 0 healthy, 1 degraded or unhealthy, 4 nobody there
"""

import time
from collections.abc import Iterator, Sequence

import click

from runwick.cli.answers import Answer, ErrorPart
from runwick.cli.commands import AnsweringCommand
from runwick.cli.failures import error_with
from runwick.cli.results import WorkerHealthBody, WorkersHealthBody
from runwick.cli.run_dir import run_dir_of
from runwick.contracts.errors import ConfigurationError
from runwick.contracts.health import HealthStatus, RoleCheck
from runwick.health.checks import Now, check_live, check_worker
from runwick.health.status_file import Status, read_status_files, wrong_of
from runwick.runtime.ambient import SystemClock
from runwick.runtime.rundir import RunDir


@click.command(cls=AnsweringCommand, result="WorkersHealthBody")
@click.option("--application", metavar="NAME", help="Only the workers of this application.")
@click.option("--pid", type=click.IntRange(min=1), help="Only the worker with this process id.")
@click.option("--run-dir", metavar="DIRECTORY", help="Where the workers were told to keep their run files.")
@click.option("--live", is_flag=True, help="Ask only whether they stand still and should be started anew.")
def command(application: str | None, pid: int | None, run_dir: str | None, live: bool) -> Answer:
    """Say how the workers of this user on this host are.

    These are runwick worker and runwick-supervise. It ends with 0 when all of them are healthy, 1 when one is degraded
    or unhealthy, 4 when there is none. A worker that was told to stop is not ready but alive: give --live for a probe
    that has it started anew. No store is asked and no application is loaded.
    """
    found = run_dir_of(run_dir, make=False)
    if found.problem is not None:
        raise ConfigurationError([found.problem])
    workers = [
        status
        for status in ([] if found.path is None else read_status_files(found.path))
        if application in (None, status.application) and pid in (None, status.process)
    ]
    checks = [_check(status, live) for status in workers]
    return Answer(
        body=WorkersHealthBody(workers=tuple(map(_body, workers, checks))),
        text=lambda: "\n".join(line for each in zip(workers, checks, strict=True) for line in _lines(*each, live=live)),
        failure=_failure(checks, "no such worker" if application or pid else "no worker", found),
    )


def _failure(checks: Sequence[RoleCheck], nobody: str, found: RunDir) -> ErrorPart | None:
    if not checks:
        where = found.note or f"looked in {found.path}; --run-dir names another directory"
        return error_with("no_worker", f"{nobody} of this user runs on this host ({where.rstrip('.')}).")
    wrong = sum(check.status is not HealthStatus.HEALTHY for check in checks)
    return error_with("check_failed", f"{wrong} of {len(checks)} are not healthy") if wrong else None


def _check(status: Status, live: bool) -> RoleCheck:
    now = Now.by(SystemClock())
    return check_live(status.seen, now) if live else check_worker(status.seen, now)


def _lines(status: Status, check: RoleCheck, *, live: bool) -> Iterator[str]:
    seen = "" if check.observed_at_ms is None else f" · seen {_ago(check.observed_at_ms)}"
    reason = "" if check.status is HealthStatus.HEALTHY else f" ({check.reason})"
    who = f"{status.application or 'not loaded yet'} · {status.program} · process {status.process}"
    yield f"{check.status.value}{reason} · {who}{seen}"
    for line in [] if live else wrong_of(status):
        yield f"  {line}"


def _ago(at_ms: int) -> str:
    return f"{max(0, round(time.time() - at_ms / 1000))} s ago"


def _body(status: Status, check: RoleCheck) -> WorkerHealthBody:
    return WorkerHealthBody(
        application=status.application,
        program=status.program,
        process=status.process,
        worker=status.worker,
        role=check.role,
        status=check.status.value,
        reason=check.reason,
        observed_at_ms=check.observed_at_ms,
        text=check.text,
    )
