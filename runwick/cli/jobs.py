"""``runwick jobs``: what became of jobs, and what is done to them. Nothing private is shown but by the commands whose
names begin with ``reveal``, and by ``stack``; each of these writes down who asked.
"""

import contextlib
import functools
from typing import TYPE_CHECKING, Final

import click

from runwick.cli import jobs_changing, jobs_revealing
from runwick.cli.commands import DeskCommand, Topic
from runwick.cli.moments import MOMENT
from runwick.cli.pages import more_text, next_page, page_options

if TYPE_CHECKING:
    from runwick.cli.answers import Answer, NextAction
    from runwick.cli.at_desk import Operation
    from runwick.management.bodies import JobDetailBody, TypeBody

STATES: Final = ("pending", "reserved", "running", "retrying", "succeeded", "failed", "cancelled")
LOOK_EVERY_S: Final = 1.0


@click.group(cls=Topic)
def command() -> None:
    """Look at jobs, follow them, and control them."""


for _neighbour in (*jobs_changing.COMMANDS, *jobs_revealing.COMMANDS):
    command.add_command(_neighbour)


@command.command("list", cls=DeskCommand, permission="Jobs.Read", result="JobListBody")
@click.option("--state", type=click.Choice(STATES), multiple=True, help="May be given several times.")
@click.option("--queue", metavar="NAME")
@click.option("--name", metavar="TYPE", help="The stored name of their type.")
@click.option("--tenant", metavar="TENANT")
@click.option("--code", metavar="CODE", help="Why they stand where they stand: poison_job.")
@click.option("--from", "from_ms", type=MOMENT, metavar="MOMENT", help="Created then or later.")
@click.option("--until", "until_ms", type=MOMENT, metavar="MOMENT", help="Created before.")
@page_options
async def list_(
    operation: "Operation",
    state: tuple[str, ...],
    queue: str | None,
    name: str | None,
    tenant: str | None,
    code: str | None,
    from_ms: int | None,
    until_ms: int | None,
    cursor: str | None,
    limit: int,
) -> "Answer":
    """List jobs, the latest first. All filters must fit."""
    from runwick.cli.answers import Answer
    from runwick.cli.job_text import lay_out_jobs
    from runwick.cli.targets import job_revisions
    from runwick.contracts.listing import JobFilter
    from runwick.contracts.states import JobState

    chosen = JobFilter(
        states=frozenset(map(JobState, state)) or None,
        queue=queue,
        name=name,
        tenant=tenant,
        code=code,
        created_from_ms=from_ms,
        created_until_ms=until_ms,
    )
    page = await operation.desk.jobs(chosen, cursor, limit)
    return Answer(
        body=page,
        text=lambda: lay_out_jobs(page) + more_text(page.cursor),
        revisions=job_revisions(*page.jobs),
        next_actions=next_page(operation, page.cursor),
    )


@command.command(cls=DeskCommand, permission="Jobs.Read", result="JobDetailBody")
@click.argument("job_id", metavar="ID")
async def get(operation: "Operation", job_id: str) -> "Answer":
    """Show one job: its state, and what every attempt ended in and cost."""
    from runwick.cli.answers import Answer
    from runwick.cli.job_text import lay_out_job
    from runwick.cli.modes import Mode
    from runwick.cli.targets import job_revisions

    job = await operation.desk.job(job_id)
    others = await _others(operation, job) if operation.mode is Mode.PEOPLE else None
    actions = next_for(operation, job)
    return Answer(
        body=job,
        text=lambda: lay_out_job(job, others) + next_text(operation, actions),
        revisions=job_revisions(job),
        next_actions=actions,
    )


@command.command(cls=DeskCommand, permission="Jobs.Read", result="WaitBody")
@click.argument("job_id", metavar="ID")
async def why(operation: "Operation", job_id: str) -> "Answer":
    """Say why a job waits: every reason, not only the first."""
    from runwick.cli.answers import Answer
    from runwick.cli.job_text import lay_out_wait

    wait = await operation.desk.why(job_id)
    return Answer(body=wait, text=lambda: lay_out_wait(wait))


@command.command(cls=DeskCommand, permission="Jobs.Read", result="JobDetailBody", is_stream=True)
@click.argument("job_id", metavar="ID")
async def tail(operation: "Operation", job_id: str) -> "Answer":
    """Follow one job until it ends: one item whenever it has changed."""
    import asyncio

    from runwick.cli.answers import Answer
    from runwick.cli.following import asked_patiently
    from runwick.cli.job_text import lay_out_job, lay_out_step
    from runwick.cli.targets import job_revisions

    seen = None
    ask = functools.partial(operation.desk.job, job_id)
    while True:
        job = await (ask() if seen is None else asked_patiently(operation, ask, LOOK_EVERY_S))
        stands = (job.generation, job.revision, job.begun_at)
        if stands != seen:
            seen = stands
            step = Answer(body=job, text=functools.partial(lay_out_step, job), revisions=job_revisions(job))
            operation.teller.item(step)
        if job.state.terminal:
            return Answer(
                body=None,
                text=functools.partial(lay_out_job, job),
                revisions=job_revisions(job),
                next_actions=next_for(operation, job),
            )
        await asyncio.sleep(LOOK_EVERY_S)


async def _others(operation: "Operation", job: "JobDetailBody") -> "TypeBody | None":
    """Figures of its type, which nobody needs so much that the job is not shown without them."""
    from runwick.contracts.errors import RunwickError

    if not job.attempts:
        return None
    with contextlib.suppress(RunwickError):
        return await operation.desk.type(job.name)
    return None


def next_for(operation: "Operation", job: "JobDetailBody") -> "list[NextAction]":
    """What may be worth doing with a job that stands like this."""
    from runwick.contracts.states import LEASED_STATES, JobState

    stands = ("--expected-generation", str(job.generation), "--expected-revision", str(job.revision))
    actions = []
    last = job.attempts[-1] if job.attempts else None
    if last is not None and last.has_black_box:
        reason = "Last log lines and stack of the executor that died; it is audited."
        actions.append(operation.next("jobs reveal-black-box", job.job_id, reason=reason))
    if last is not None and last.has_error:
        reason = "Error and traceback of the last attempt; it is audited."
        actions.append(operation.next("jobs reveal-error", job.job_id, reason=reason))
    if job.state in (JobState.FAILED, JobState.CANCELLED):
        actions.append(operation.next("jobs retry", job.job_id, *stands, reason="Run it again, with fresh budgets."))
    elif job.state in (JobState.PENDING, JobState.RETRYING):
        actions.append(operation.next("jobs why", job.job_id, reason="Why it waits."))
    elif job.state in LEASED_STATES:
        actions.append(operation.next("jobs tail", job.job_id, reason="Follow it until it ends."))
    return actions


def next_text(operation: "Operation", actions: "list[NextAction]") -> str:
    """The line of what may come next, with the line break before it; where the job is found is said once."""
    import shlex

    if not actions:
        return ""
    place = shlex.join(operation.place.arguments)
    shown = [f"runwick {each.command} {each.argv[2 + len(each.command.split())]}" for each in actions]
    return f"\n  next{f' (with {place})' if place else ''}: {' · '.join(shown)}"
