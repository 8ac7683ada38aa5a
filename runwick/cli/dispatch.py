"""``runwick dispatch``: a job by hand. Its payload comes from a file or standard input, never from the command line,
which every user of the machine could read.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click

from runwick.cli.commands import DeskCommand
from runwick.cli.moments import DURATION

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.contracts.states import PriorityName

PAYLOAD_MAX_BYTES: Final = 4 * 1024 * 1024
"""More is not read; the desk's own limit is lower."""


@click.command(cls=DeskCommand, permission="Jobs.Dispatch", result="DispatchBody", changes=True)
@click.argument("name", metavar="TYPE")
@click.option("--payload", metavar="@FILE|-", required=True, help="JSON of the type's record; - is standard input.")
@click.option("--queue", metavar="NAME", help="Instead of the type's own.")
@click.option("--priority", type=click.Choice(["high", "medium", "low"]), help="Instead of the type's own.")
@click.option("--delay", "delay_ms", type=DURATION, metavar="DURATION", help="Begin so much later: 250ms, 15s, 2min.")
@click.option("--tenant", metavar="TENANT", help="Whom it belongs to.")
async def command(
    operation: "Operation",
    name: str,
    payload: str,
    queue: str | None,
    priority: str | None,
    delay_ms: int | None,
    tenant: str | None,
) -> "Answer":
    """Create a job by hand, from a JSON payload.

    On a store this needs --app, for the application's code knows the job's record.
    """
    from runwick.cli.answers import Answer
    from runwick.cli.desks import HandDispatch

    asked = HandDispatch(
        name=name,
        payload=_read_payload(payload, is_stdin_taken=operation.place.secret_stdin),
        queue=queue,
        priority=cast("PriorityName | None", priority),
        delay_ms=delay_ms,
        tenant=tenant,
    )
    done = await operation.desk.dispatch(asked, operation.change)
    said = " (it was dispatched before)" if done.replayed else ""
    found = [] if done.job_id is None else [operation.next("jobs tail", done.job_id, reason="Follow it.")]
    return Answer(
        body=done,
        text=lambda: f"job {done.job_id or 'hidden'}  {done.disposition}{said}",
        next_actions=found,
    )


def _read_payload(where: str, *, is_stdin_taken: bool) -> bytes:
    """The payload's JSON, checked as far as that it is some.

    Raises:
        click.UsageError: it is not given as it should be, cannot be read, or is no JSON.
    """
    import msgspec

    if where == "-":
        if is_stdin_taken:
            raise click.UsageError(
                "--payload - and --secret-stdin both want standard input; put the payload in a file."
            )
        payload = sys.stdin.buffer.read(PAYLOAD_MAX_BYTES + 1)
    elif where.startswith("@"):
        try:
            with Path(where[1:]).open("rb") as file:
                payload = file.read(PAYLOAD_MAX_BYTES + 1)
        except OSError as error:
            raise click.UsageError(f"--payload: {where[1:]} cannot be read: {error.strerror}.") from None
    else:
        raise click.UsageError("--payload takes @FILE or -, never the payload itself, which others could see.")
    if len(payload) > PAYLOAD_MAX_BYTES:
        raise click.UsageError(f"--payload holds more than {PAYLOAD_MAX_BYTES:,} bytes.")
    try:
        msgspec.json.decode(payload, type=msgspec.Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--payload is no JSON: {error}.") from None
    return payload.strip()
