"""``runwick jobs cancel``, ``retry``, ``rerun`` and ``cancel-many``."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Final, TextIO

import click

from runwick.cli.commands import DeskCommand

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.contracts.controls import ControlAction, JobTarget
    from runwick.management.bodies import ControlBody

STANDS: Final = ("generation", "revision")
READ: Final = ("jobs get", "{job_id}")
TARGET: Final = "job:{job_id}"
LINES_MAX: Final = 100_000
BUSY_S: Final = 5.0
"""Before a command is sent again that the server had no time for: it takes some in a minute, and no more."""


@click.command(
    cls=DeskCommand,
    permission="Jobs.Cancel",
    result="ControlBody",
    changes=True,
    expected=STANDS,
    read_by=READ,
    target=TARGET,
)
@click.argument("job_id", metavar="ID")
async def cancel(operation: "Operation", job_id: str) -> "Answer":
    """Cancel a job. A waiting one ends; a running one is asked to stop."""
    return await _control(operation, "cancel", job_id)


@click.command(
    cls=DeskCommand,
    permission="Jobs.Retry",
    result="ControlBody",
    changes=True,
    expected=STANDS,
    read_by=READ,
    target=TARGET,
)
@click.argument("job_id", metavar="ID")
async def retry(operation: "Operation", job_id: str) -> "Answer":
    """Give a failed or cancelled job a fresh generation."""
    return await _control(operation, "retry", job_id)


@click.command(
    cls=DeskCommand,
    permission="Jobs.Rerun",
    result="ControlBody",
    changes=True,
    expected=STANDS,
    read_by=READ,
    target=TARGET,
)
@click.argument("job_id", metavar="ID")
async def rerun(operation: "Operation", job_id: str) -> "Answer":
    """Run a job once more that has succeeded."""
    return await _control(operation, "rerun", job_id)


@click.command("cancel-many", cls=DeskCommand, permission="Jobs.Cancel", result="ControlListBody", changes=True)
@click.option(
    "--file",
    type=click.File("rb"),
    required=True,
    help="Lines of {jobId, expectedGeneration, expectedRevision}; - is standard input.",
)
async def cancel_many(operation: "Operation", file: IO[bytes]) -> "Answer":
    """Cancel the jobs of a file, a hundred in each command.

    A job that has changed since is left alone, and the others are cancelled.
    """
    from runwick.cli.answers import Answer
    from runwick.cli.failures import error_with
    from runwick.cli.results import ControlListBody
    from runwick.cli.targets import job_revisions

    targets = _read_targets(file)
    done = [each async for each in _cancelled(operation, targets)]
    refused = [each for each in done if each.code is not None]
    failure = None
    if refused:
        message = f"{len(refused):,} of {len(done):,} jobs were refused, the first with {refused[0].code}"
        failure = error_with(refused[0].code or "", message, operation.change.command_id)
    return Answer(
        body=ControlListBody(results=tuple(done)),
        text=lambda: _many_text(done, refused),
        revisions=job_revisions(*done),
        failure=failure,
    )


COMMANDS: Final = (cancel, retry, rerun, cancel_many)


async def _control(operation: "Operation", action: str, job_id: str) -> "Answer":
    from runwick.cli.answers import Answer
    from runwick.cli.targets import job_revisions, job_target
    from runwick.contracts.controls import ControlAction

    target = await job_target(operation, job_id)
    done = await operation.desk.control(ControlAction(action), target, operation.change)
    again = operation.next("jobs get", done.job_id, reason="How it stands now.")
    return Answer(
        body=done,
        text=lambda: _control_text(ControlAction(action), done),
        revisions=job_revisions(done),
        next_actions=[again],
    )


def _control_text(action: "ControlAction", done: "ControlBody") -> str:
    stands = f"job {done.job_id}  {done.state}  generation {done.generation}  revision {done.revision}"
    asked = "  asked to stop; it may still succeed" if done.cancel_requested else ""
    return f"{stands}{asked}{'  (it was done before)' if done.replayed else ''}"


def _many_text(done: "Sequence[ControlBody]", refused: "Sequence[ControlBody]") -> str:
    asked = sum(each.cancel_requested for each in done if each.code is None)
    lines = [f"{len(done) - len(refused):,} cancelled" + (f", of which {asked:,} were asked to stop" if asked else "")]
    return "\n".join([*lines, *(f"  {each.job_id}  {each.code}" for each in refused)])


async def _cancelled(operation: "Operation", targets: "Sequence[JobTarget]") -> "AsyncIterator[ControlBody]":
    """One command for each hundred, with the id of its own that the given one and its place lead to: the same file
    with the same ``--command-id`` does the same."""
    import functools
    import uuid

    import msgspec

    from runwick.cli.following import asked_patiently
    from runwick.contracts.controls import TARGETS_MAX, ControlAction
    from runwick.contracts.errors import RunwickError

    given = operation.change
    batches = [targets[at : at + TARGETS_MAX] for at in range(0, len(targets), TARGETS_MAX)]
    with click.progressbar(length=len(targets), label="cancelling", file=_progress_file(operation, batches)) as bar:
        for place, batch in enumerate(batches):
            own = given.command_id if not place else str(uuid.uuid5(uuid.UUID(given.command_id), str(place)))
            change = msgspec.structs.replace(given, command_id=own)
            cancel = functools.partial(operation.desk.control_many, ControlAction.CANCEL, batch, change)
            try:
                done = await asked_patiently(operation, cancel, BUSY_S)
            except RunwickError:
                operation.teller.note(f"{place * TARGETS_MAX:,} of {len(targets):,} jobs were dealt with before")
                raise
            for each in done:
                yield each
            bar.update(len(batch))


def _progress_file(operation: "Operation", batches: "Sequence[object]") -> TextIO:
    """Standard error for people who wait for several commands; nobody else sees progress."""
    import io
    import sys

    from runwick.cli.modes import Mode

    is_watched = operation.mode is Mode.PEOPLE and len(batches) > 1 and sys.stderr.isatty()
    return sys.stderr if is_watched else io.StringIO()


def _read_targets(file: IO[bytes]) -> "list[JobTarget]":
    """All targets of a file, or the first line that is none.

    Raises:
        click.UsageError: a line is no target, a job is named twice, or there are none, or too many.
    """
    targets = list(_targets(file))
    if not targets:
        raise click.UsageError("--file holds no line.")
    if len(targets) > LINES_MAX:
        raise click.UsageError(f"--file holds {len(targets):,} jobs; {LINES_MAX:,} are the most.")
    return targets


def _targets(file: IO[bytes]) -> "Iterator[JobTarget]":
    import msgspec

    from runwick.cli.results import TargetLine
    from runwick.contracts.controls import JobTarget

    seen = set()
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            read = msgspec.json.decode(line, type=TargetLine)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise click.UsageError(f"--file, line {number}: {error}") from None
        if read.job_id in seen:
            raise click.UsageError(f"--file, line {number}: job {read.job_id} is named before.")
        seen.add(read.job_id)
        yield JobTarget(read.job_id.bytes, read.expected_generation, read.expected_revision)
