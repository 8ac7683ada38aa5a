"""How workers and their executors look to people."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from runwick.cli.job_text import moment_text
from runwick.cli.tables import lay_out_table, painted, terminal_text
from runwick.management.amounts import elapsed, percent, size
from runwick.management.bodies import ExecutorBody, OverviewBody, WorkerBody, WorkerListBody

HEADER = ("executor", "pool", "phase", "type", "job", "cpu", "memory", "attempts", "restarts")


def lay_out_workers(found: WorkerListBody) -> str:
    """Each worker in a line, with its executors as a table below."""
    if not found.workers:
        return "no workers"
    return "\n".join(line for worker in found.workers for line in _worker(worker, found.as_of))


def executor_row(executor: ExecutorBody) -> Sequence[str | None]:
    """The cells of one executor, in the order of `HEADER`."""
    restarts = str(executor.restarts)
    if executor.restarted_for is not None:
        restarts += f" ({executor.restarted_for})"
    return (
        str(executor.number),
        executor.pool,
        executor.phase,
        executor.name,
        executor.job_id,
        None if executor.cpu_us is None else elapsed(executor.cpu_us),
        None if executor.rss_bytes is None else size(executor.rss_bytes),
        f"{executor.attempts:,}",
        restarts,
    )


def headline(overview: OverviewBody) -> str:
    """How it goes, in one line."""
    due = f"{overview.due:,}{'+' if overview.due_is_capped else ''}"
    shown = [f"{overview.running:,} running", f"{due} due", f"{overview.blocked:,} held by a limit"]
    if overview.executors is not None:  # null for whoever may not look at workers
        shown.insert(0, f"{overview.executors_busy} of {overview.executors} executors busy")
    if overview.cores is not None:
        share = "" if overview.cores_share is None else f" ({percent(overview.cores_share)})"
        shown.append(f"{overview.cores:.1f} cores in handlers{share}")
    if overview.oldest_due_at is not None:
        shown.append(f"oldest due since {moment_text(overview.oldest_due_at)}")
    return " · ".join(shown)


def _worker(worker: WorkerBody, as_of: str) -> list[str]:
    state = "alive" if worker.alive else "gone" if worker.departed_at is None else "departed"
    line = (
        f"worker {worker.worker}  {painted(state)}  {terminal_text(worker.host)} process {worker.process}  "
        f"queues {', '.join(worker.queues) or 'none'}  seen {_since(worker.seen_at, as_of)} ago"
    )
    rows = [executor_row(each) for each in worker.executors]
    return [line, lay_out_table(HEADER, rows)] if rows else [line]


def _since(at: str, as_of: str) -> str:
    passed = datetime.fromisoformat(as_of) - datetime.fromisoformat(at)
    return elapsed(max(passed // timedelta(microseconds=1), 0))
