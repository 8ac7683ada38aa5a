"""``runwick jobs reveal-…`` and ``stack``: what is private, shown once it is written down who asked for it."""

from typing import TYPE_CHECKING, Final

import click

from runwick.cli.commands import DeskCommand
from runwick.cli.jobs_changing import READ, STANDS, TARGET

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.contracts.revealing import Secret
    from runwick.management.bodies import AttemptBody, RevealBody

STACK_EVERY_S: Final = 1.0
STACK_WITHIN_S: Final = 8.0

attempt_option = click.option(
    "--attempt", metavar="ID|NUMBER", help="Which attempt's, of the last generation; by default the last that has one."
)


@click.command("reveal-payload", cls=DeskCommand, permission="Jobs.ReadPayload", result="RevealBody", changes=True)
@click.argument("job_id", metavar="ID")
async def payload(operation: "Operation", job_id: str) -> "Answer":
    """Show the payload of a job. It is audited."""
    return await _reveal(operation, "payload", job_id, None)


@click.command("reveal-result", cls=DeskCommand, permission="Jobs.ReadPayload", result="RevealBody", changes=True)
@click.argument("job_id", metavar="ID")
async def result(operation: "Operation", job_id: str) -> "Answer":
    """Show what the handler of a job returned. It is audited."""
    return await _reveal(operation, "result", job_id, None)


@click.command("reveal-error", cls=DeskCommand, permission="Jobs.ReadError", result="RevealBody", changes=True)
@click.argument("job_id", metavar="ID")
@attempt_option
async def error(operation: "Operation", job_id: str, attempt: str | None) -> "Answer":
    """Show error and traceback of an attempt. It is audited."""
    return await _reveal(operation, "error", job_id, attempt)


@click.command("reveal-black-box", cls=DeskCommand, permission="Jobs.ReadError", result="RevealBody", changes=True)
@click.argument("job_id", metavar="ID")
@attempt_option
async def black_box(operation: "Operation", job_id: str, attempt: str | None) -> "Answer":
    """Show the last log lines and the stack of an executor that died. It is audited."""
    return await _reveal(operation, "black_box", job_id, attempt)


@click.command(
    cls=DeskCommand,
    permission="Jobs.ReadError",
    result="RevealBody",
    changes=True,
    expected=STANDS,
    read_by=READ,
    target=TARGET,
)
@click.argument("job_id", metavar="ID")
async def stack(operation: "Operation", job_id: str) -> "Answer":
    """Ask a running attempt for its stack, and show it. It is audited."""
    import asyncio
    import time
    import uuid

    import msgspec

    from runwick.cli.failures import Rejected, error_with
    from runwick.cli.targets import job_target
    from runwick.contracts.controls import ControlAction
    from runwick.contracts.revealing import Secret

    target = await job_target(operation, job_id)
    asked = await operation.desk.control(ControlAction.LOOK, target, operation.change)
    # One reveal, whose id follows from the command's, so that asking again writes no second row.
    own = str(uuid.uuid5(uuid.UUID(operation.change.command_id), "stack"))
    change = msgspec.structs.replace(operation.change, command_id=own)
    until_s = time.monotonic() + STACK_WITHIN_S
    while True:
        await asyncio.sleep(STACK_EVERY_S)
        shown = await operation.desk.reveal(Secret.STACK, job_id, asked.attempt_id, change)
        if shown.text is not None:
            return _answer(shown)
        if time.monotonic() > until_s:
            message = (
                f"no stack came within {STACK_WITHIN_S:g} s: the attempt may have ended, or its worker stands still"
            )
            raise Rejected(error_with("not_found", message))


COMMANDS: Final = (payload, result, error, black_box, stack)


async def _reveal(operation: "Operation", what: str, job_id: str, attempt: str | None) -> "Answer":
    from runwick.contracts.revealing import Secret

    secret = Secret(what)
    is_of_job = secret in (Secret.PAYLOAD, Secret.RESULT)
    attempt_id = None if is_of_job else await _attempt_id(operation, secret, job_id, attempt)
    return _answer(await operation.desk.reveal(secret, job_id, attempt_id, operation.change))


async def _attempt_id(operation: "Operation", secret: "Secret", job_id: str, attempt: str | None) -> str:
    """The attempt that is meant.

    Raises:
        RunwickError: there is no such job or attempt, or none that has any.
    """
    from runwick.cli.failures import Rejected, error_with
    from runwick.contracts.revealing import Secret

    if attempt is not None and not attempt.isdecimal():
        return attempt
    job = await operation.desk.job(job_id)

    def has(each: "AttemptBody") -> bool:
        return each.has_error if secret is Secret.ERROR else each.has_black_box

    fitting = [each for each in job.attempts if has(each)]
    if attempt is not None:
        fitting = [each for each in fitting if each.generation == job.generation and each.number == int(attempt)]
    if not fitting:
        which = "no attempt of it has" if attempt is None else f"attempt {attempt} is not there, or has not"
        message = f"{which} any {secret.value.replace('_', ' ')}"
        raise Rejected(error_with("not_found", message))
    return fitting[-1].attempt_id


def _answer(shown: "RevealBody") -> "Answer":
    from runwick.cli.answers import Answer

    return Answer(body=shown, text=lambda: _text(shown))


def _text(shown: "RevealBody") -> str:
    """What was revealed, with everything escaped that a terminal would act upon."""
    import msgspec

    from runwick.cli.tables import terminal_text

    parts: list[str] = []
    if shown.json is not None:
        parts.append(msgspec.json.format(bytes(shown.json), indent=2).decode())
    if shown.type is not None:
        parts.append(f"{shown.type}: {shown.message}")
    if shown.log is not None:
        parts += ["last log lines:", *(f"  {line}" for line in shown.log or ("none",))]
    if shown.text:
        parts.append(shown.text.rstrip("\n"))
    return terminal_text("\n".join(parts)) or "there is no such thing any more"
