"""How jobs look to people: one in full, or many as a table. Nothing private is in the bodies they are made from."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from runwick.cli.tables import lay_out_table, painted, terminal_text
from runwick.contracts import errors
from runwick.contracts.codes import CODES
from runwick.contracts.states import JobState, Priority
from runwick.declarations.suggestions import quoted
from runwick.management.amounts import elapsed, size
from runwick.management.bodies import (
    AttemptBody,
    DistributionBody,
    JobBody,
    JobDetailBody,
    JobListBody,
    TypeBody,
    UsageBody,
    WaitBody,
)

_OURS: Final = f"{errors.__name__}."


def lay_out_job(job: JobDetailBody, others: TypeBody | None = None) -> str:
    """One job: two lines of facts, what runs now, its attempts as a table, and how others of its type were.

    Args:
        job: which.
        others: figures of its type, where they are known.
    """
    lines = ["  ".join(_headline(job)), f"  {'  '.join(_progress(job))}"]
    if job.state is JobState.FAILED and (row := CODES.get(job.code or "")) is not None:
        lines.append(f"  {row.hint}")
    if (running := job.running) is not None:
        told = [
            f"executor {running.executor}" if running.executor is not None else "",
            f"on {terminal_text(running.host)}" if running.host is not None else "",
            f"phase {running.phase}" if running.phase is not None else "",
            f"cpu {elapsed(running.cpu_us)}" if running.cpu_us is not None else "",
            f"memory {size(running.rss_bytes)}" if running.rss_bytes is not None else "",
        ]
        if running.worker_alive is False:
            lines.append("  its worker is gone; another one takes the job up when the lease has run out")
        elif any(told):
            lines.append(f"  now: {'  '.join(filter(None, told))}")
    if job.attempts:
        lines.append(_attempt_table(job.attempts))
    if others is not None and (figures := list(_others(job, others))):
        lines.append(f"  others of its type: {' · '.join(figures)}")
    return "\n".join(lines)


def lay_out_jobs(page: JobListBody) -> str:
    """A page of jobs as a table."""
    if not page.jobs:
        return "no such jobs" if page.cursor is None else "none here; there may be more"
    rows = [
        [
            each.job_id,
            each.name,
            each.state.value,
            each.code,
            each.queue,
            each.tenant,
            f"{each.executions} of {each.max_executions}",
            moment_text(each.created_at),
            None if each.ended_at is None else moment_text(each.ended_at),
        ]
        for each in page.jobs
    ]
    header = ["job", "type", "state", "code", "queue", "tenant", "executions", "created", "ended"]
    return lay_out_table(header, rows, indent="")


def lay_out_wait(wait: WaitBody) -> str:
    """Why a job waits, one line for each reason."""
    if not wait.reasons:
        return f"job {wait.job_id} does not wait: it is {wait.state.value}"
    return "\n".join([f"job {wait.job_id} is {wait.state.value}", *(f"  {each.text}" for each in wait.reasons)])


def lay_out_step(job: JobDetailBody) -> str:
    """Where a job stands, in one line."""
    at = job.ended_at or job.begun_at or job.due_at or job.created_at
    tried = f"execution {job.executions} of {job.max_executions}"
    return f"{moment_text(at)}  {painted(_state(job))}  generation {job.generation}  {tried}"


def moment_text(at: str) -> str:
    """A time of a body, to the second: ``2026-11-29 12:00:03 UTC``."""
    return f"{at[:10]} {at[11:19]} UTC"


def _state(job: JobBody) -> str:
    return job.state.value if job.code is None else f"{job.state.value} ({job.code})"


def _headline(job: JobBody) -> Iterator[str]:
    """Which job it is and where it stands."""
    yield f"job {job.job_id}"
    yield job.name if job.version == 1 else f"{job.name} (version {job.version})"
    yield painted(job.state.value) + ("" if job.code is None else f" ({job.code})")
    is_special = job.priority is not Priority.MEDIUM
    yield f"queue {job.queue}" + (f" ({job.priority.value})" if is_special else "")
    yield f"created {moment_text(job.created_at)}"


def _progress(job: JobDetailBody) -> Iterator[str]:
    """How far it came, and when it goes on or ended."""
    if job.generation > 1:
        yield f"generation {job.generation}"
    yield f"executions {job.executions} of {job.max_executions}"
    if job.due_at is not None:
        yield f"due {moment_text(job.due_at)}"
    if job.state is JobState.RUNNING:
        yield "handed over" if job.begun_at is None else f"begun {moment_text(job.begun_at)}"
    if job.cancel_requested_at is not None:
        yield f"cancel requested {moment_text(job.cancel_requested_at)}"
    if job.expires_at is not None and job.ended_at is None:
        yield f"expires {moment_text(job.expires_at)}"
    if job.ended_at is not None:
        yield f"ended {moment_text(job.ended_at)}"
    if job.tenant is not None:
        yield f"tenant {terminal_text(quoted(job.tenant))}"
    if job.has_result:
        yield "result stored"


def _attempt_table(attempts: Sequence[AttemptBody]) -> str:
    several_generations = len({each.generation for each in attempts}) > 1
    rows = [
        [
            str(each.generation) if several_generations else None,
            str(each.number),
            each.outcome,
            _why(each),
            *_cost(each.usage),
        ]
        for each in attempts
    ]
    header = ["generation", "#", "outcome", "why", "wall", "cpu", "peak memory", "allocated"]
    return lay_out_table(header, rows)


def _why(attempt: AttemptBody) -> str | None:
    """A code, and how an executor died; the text of an exception is never in a body."""
    if attempt.death is None:
        return attempt.code
    return f"{attempt.code} ({attempt.death.text})" if attempt.code else attempt.death.text


def _cost(usage: UsageBody | None) -> Sequence[str | None]:
    """Wall time, CPU time with that of child processes, memory, each where it is known."""
    if usage is None:
        return None, None, None, None
    cpu_us = None
    if usage.cpu_user_us is not None and usage.cpu_system_us is not None:
        cpu_us = usage.cpu_user_us + usage.cpu_system_us + (usage.cpu_children_us or 0)
    return (
        None if usage.wall_us is None else elapsed(usage.wall_us),
        None if cpu_us is None else elapsed(cpu_us),
        None if usage.rss_peak_bytes is None else size(usage.rss_peak_bytes),
        None if usage.allocated_bytes is None else size(usage.allocated_bytes),
    )


def _others(job: JobDetailBody, others: TypeBody) -> Iterator[str]:
    """Its type's figures, as far as they rest on more runs than its own."""
    own = sum(1 for _ in itertools.filterfalse(lambda each: each.usage is None, job.attempts))

    def spread(figure: DistributionBody | None) -> DistributionBody | None:
        return figure if figure is not None and figure.count > own else None

    if (memory := spread(others.rss_peak_bytes)) is not None:
        yield f"peak memory median {size(memory.p50)}, 99 % below {size(memory.p99)}"
    if (wall := spread(others.wall_us)) is not None:
        yield f"wall median {elapsed(wall.p50)}, 99 % below {elapsed(wall.p99)}"
