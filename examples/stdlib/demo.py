"""``make demo``: examine the standard library on every core, and show what it came to and what it cost.

    migrate a fresh store ─▶ dispatch a job per module ─▶ runwick-supervise --until-empty ─▶ read results ─▶ report
                                                            (a child; its JSON lines drive the progress bar)

The store is a SQLite file, or with ``STORE=postgres`` and ``STORE=redis`` a server that the demo starts and stops. On
two cores it takes about 15 seconds, since the library's own tests are examined too. Ctrl-C lets running handlers end
and stops; once more stops them by force.

What it leaves in ``.runwick`` is the store of its last run, for the two commands that it ends with: one job, and the
dashboard on all of them. The next run takes its place, so never more than one of each kind is kept.
"""

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click
from rich.console import Console

from examples.stdlib.progress import progress
from examples.stdlib.report import Costly, Examined, Facts, Kept, command_for_dashboard, command_for_more, report
from runwick import JobState
from runwick.contracts.identity import id_text

APPLICATION = "examples.stdlib.jobs"
SUPERVISE = ["--until-empty", "--log-format", "json", "--progress-interval", "200ms"]
BATCH = 100
"""Jobs per dispatch: the most that fit in one transaction."""
COSTLIEST = 5
LEFT = {"sqlite": "file", "postgres": "dump", "redis": "copy of its files"}
"""What the demo leaves of each kind of store."""


@click.command()
@click.option("--store", type=click.Choice([*LEFT]), default="sqlite", show_default=True)
@click.option("--modules", type=click.IntRange(min=1), help="Examine only so many. [default: all]")
def main(store: str, modules: int | None) -> None:
    """Run the demo; ends with the supervisor's exit status, or with 130 after Ctrl-C."""
    os.environ.pop("RUNWICK_STORE", None)  # the demo keeps to its own store, whatever this shell works with
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Commands and paths are printed whole, to be copied; the terminal breaks them if it must.
    console = Console(soft_wrap=True, markup=False, highlight=False)
    if not console.is_terminal:
        console.width = 120
    try:
        match store:
            case "sqlite":
                status = _on_a_file(console, modules)
            case "postgres":
                status = _on_postgres(console, modules)
            case _:
                status = _on_redis(console, modules)
    except KeyboardInterrupt:
        console.print(f"Stopped. Every job that was confirmed is still in the {LEFT[store]}.")
        status = 130
    sys.exit(status)


def _on_a_file(console: Console, modules: int | None) -> int:
    from examples.stdlib.jobs import DATABASE

    DATABASE.parent.mkdir(exist_ok=True)
    for suffix in ("", "-wal", "-shm", "-turnstile"):
        DATABASE.with_name(DATABASE.name + suffix).unlink(missing_ok=True)
    return _run(console, modules, lambda: Kept("the SQLite file"))


def _on_postgres(console: Console, modules: int | None) -> int:
    from examples.stdlib.postgres import BRING_BACK, cpu_s, served

    with served() as server:
        return _run(console, modules, lambda: Kept("PostgreSQL", (server.pid, cpu_s(server)), BRING_BACK))


def _on_redis(console: Console, modules: int | None) -> int:
    from examples.stdlib.redis import BRING_BACK, cpu_s, served

    with served() as server:
        return _run(console, modules, lambda: Kept("Redis", (server.pid, cpu_s(server)), BRING_BACK))


def _run(console: Console, modules: int | None, kept: Callable[[], Kept]) -> int:
    from examples.stdlib.jobs import rw

    with contextlib.closing(rw):
        paths = _dispatch(console, modules)
        with _supervisor() as child:
            events = progress(console, _events(child), total=len(paths))
            status = child.wait()
        if "summary" not in events:
            console.print(f"runwick-supervise ended early with status {status}.", style="red")
            return status or 1
        facts = _facts(paths, events, child.pid, kept())
    console.print()
    console.print(report(facts), soft_wrap=False)
    console.print(command_for_more(facts), style="cyan")
    console.print("All of them in a browser, signed in by the link that this prints:")
    console.print(command_for_dashboard(facts), style="cyan")
    return status


def _dispatch(console: Console, modules: int | None) -> Mapping[str, str]:
    """Ask for every module, or for so many, in a fresh store; answers the path of each job by its id."""
    from examples.stdlib.jobs import STDLIB, ExamineModule, rw, stdlib_paths

    rw.migrate()
    waiting = stdlib_paths()[:modules]
    paths: dict[str, str] = {}
    for start in range(0, len(waiting), BATCH):
        batch = waiting[start : start + BATCH]
        receipts = rw.dispatch_many(ExamineModule(path) for path in batch)
        paths |= {receipt.job_id: path for receipt, path in zip(receipts, batch, strict=True)}
    console.print(f"Dispatched {len(paths):,} jobs, one for each module in {STDLIB}, to {rw.store.description}.")
    console.print(f"runwick-supervise {APPLICATION} {' '.join(SUPERVISE)}", style="dim")
    return paths


@contextlib.contextmanager
def _supervisor() -> Iterator[subprocess.Popen[str]]:
    """`runwick-supervise` as a child in a process group of its own: a Ctrl-C reaches only us, and we stop it."""
    command = [sys.executable, "-m", "runwick_supervisor.command", APPLICATION, *SUPERVISE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0) as child:
        try:
            yield child
        finally:
            while child.poll() is None:
                child.terminate()
                with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
                    child.wait(timeout=30)


def _events(child: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert child.stdout is not None
    for line in child.stdout:
        yield json.loads(line)


def _facts(paths: Mapping[str, str], events: Mapping[str, Any], supervisor: int, kept: Kept) -> Facts:
    """Read back what the handlers returned and what their attempts cost."""
    from examples.stdlib.jobs import rw

    examined = []
    for job_id, path in paths.items():
        job = rw.get(job_id)
        if job.state is JobState.SUCCEEDED:
            examined.append(Examined(path, job.result(), job.usage))

    def costliest(by: str) -> list[Costly]:
        runs = rw.store.run(rw.store.costliest(rw.application, by, COSTLIEST))
        return [Costly(paths[id_text(run.job_id)], id_text(run.job_id), run.usage) for run in runs]

    return Facts(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        cores=events["opened"]["cores"],
        summary=events["summary"],
        examined=examined,
        supervisor=supervisor,
        most_cpu=costliest("cpu_us"),
        most_memory=costliest("rss_peak_bytes"),
        application=APPLICATION,
        kept=kept,
    )


if __name__ == "__main__":
    main()
