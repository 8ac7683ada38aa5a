"""``runwick jobs``: what became of a job. Payloads, results and error texts are never shown here."""

import contextlib
import signal
from collections.abc import Iterator, Sequence

import click

from runwick.cli.application import application_options, load
from runwick.cli.figures import elapsed, moment, size
from runwick.cli.tables import lay_out_table
from runwick.contracts import errors
from runwick.contracts.errors import JobNotFound
from runwick.contracts.identity import id_bytes, id_text
from runwick.contracts.outcomes import Death
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import AttemptRecord, JobRecord
from runwick.declarations.suggestions import quoted


@click.group()
def command() -> None:
    """Look at jobs."""


@command.command()
@click.argument("job_id", metavar="ID")
@application_options
def get(job_id: str, app: str, app_dir: str) -> None:
    """Show one job: its state, and what every attempt ended in and cost."""
    raw = id_bytes(job_id)
    with contextlib.closing(load(app, app_dir)) as runwick:
        record = runwick.store.run(runwick.store.job(runwick.application, raw))
    if record is None:
        raise JobNotFound("not_found", f"no job {id_text(raw)} in application {quoted(runwick.application)}")
    click.echo(lay_out_job(record))


def lay_out_job(record: JobRecord) -> str:
    """The text about one job: two lines of facts, its attempts as a table, whether there is a result."""
    lines = ["  ".join(_headline(record)), f"  {'  '.join(_progress(record))}"]
    if record.attempts:
        lines.append(_attempt_table(record.attempts))
    if any(attempt.error is not None and attempt.error.text for attempt in record.attempts):
        lines.append("  tracebacks stored (rw.get(…).attempts[…].error)")
    if any(attempt.black_box is not None for attempt in record.attempts):
        lines.append("  last log lines and stack stored (rw.get(…).attempts[…].black_box)")
    if record.result is not None:
        lines.append(f"  result stored ({size(len(record.result))})")
    return "\n".join(lines)


def _headline(record: JobRecord) -> Iterator[str]:
    """Which job it is and where it stands."""
    yield f"job {id_text(record.job_id)}"
    yield record.kind.name if record.kind.version == 1 else f"{record.kind.name} (version {record.kind.version})"
    yield record.state.value if record.code is None else f"{record.state.value} ({record.code})"
    high_or_low = record.lane.priority != Priority.MEDIUM
    yield f"queue {record.lane.queue}" + (f" ({record.lane.priority.value})" if high_or_low else "")
    yield f"created {moment(record.created_at_ms)}"


def _progress(record: JobRecord) -> Iterator[str]:
    """How far it came, and when it goes on or ended."""
    if record.generation > 1:
        yield f"generation {record.generation}"
    yield f"executions {record.executions} of {record.max_executions}"
    if record.due_at_ms is not None:
        yield f"due {moment(record.due_at_ms)}"
    if record.state is JobState.RUNNING:
        yield "handed over" if record.begun_at_ms is None else f"begun {moment(record.begun_at_ms)}"
    if record.cancel_requested_at_ms is not None:
        yield f"cancel requested {moment(record.cancel_requested_at_ms)}"
    if record.expires_at_ms is not None and record.ended_at_ms is None:
        yield f"expires {moment(record.expires_at_ms)}"
    if record.ended_at_ms is not None:
        yield f"ended {moment(record.ended_at_ms)}"
    if record.tenant is not None:
        yield f"tenant {quoted(record.tenant)}"


def _attempt_table(attempts: Sequence[AttemptRecord]) -> str:
    several_generations = len({each.generation for each in attempts}) > 1
    rows = [
        [str(each.generation) if several_generations else None, str(each.number), *_fate(each), *_cost(each)]
        for each in attempts
    ]
    return lay_out_table(["generation", "#", "outcome", "why", "wall", "cpu", "peak memory"], rows)


def _fate(attempt: AttemptRecord) -> Sequence[str | None]:
    """What it ended in and why: a code, and the type of the error but never the text of an exception."""
    why, detail = attempt.code, None
    if attempt.death is not None:
        detail = ending(attempt.death)
    elif attempt.error is not None:
        detail = attempt.error.type.removeprefix(f"{errors.__name__}.")
    if detail is not None:
        why = f"{why} ({detail})" if why else detail
    return attempt.outcome, why


def ending(death: Death) -> str:
    """How an executor died, and in which phase of the attempt."""
    match death.cause:
        case "out_of_memory":
            text = "killed for memory"
        case "memory_limit":
            text = "over its memory limit"
        case "signal":
            text = f"killed by {_signal_name(death.signal)}"
        case "exit":
            text = f"exited with status {death.status}"
        case _:
            text = "ended in an unknown way"
    return text if death.phase is None else f"{text} in {death.phase}"


def _signal_name(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"


def _cost(attempt: AttemptRecord) -> Sequence[str | None]:
    """Wall time, CPU time with that of child processes, and peak memory, each where it is known."""
    usage = attempt.usage
    if usage is None:
        return None, None, None
    cpu_us = None if usage.cpu_us is None else usage.cpu_us + (usage.cpu_children_us or 0)
    return (
        None if usage.wall_us is None else elapsed(usage.wall_us),
        None if cpu_us is None else elapsed(cpu_us),
        None if usage.rss_peak_bytes is None else size(usage.rss_peak_bytes),
    )
