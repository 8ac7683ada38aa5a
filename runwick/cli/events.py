"""``runwick events``: what happens to jobs, in the order in which it was committed."""

import functools
from typing import TYPE_CHECKING, Final

import click

from runwick.cli.commands import DeskCommand, Topic

if TYPE_CHECKING:
    from runwick.cli.answers import Answer
    from runwick.cli.at_desk import Operation
    from runwick.management.bodies import EventBody

LOOK_EVERY_S: Final = 2.0
PAGE: Final = 100


@click.group(cls=Topic)
def command() -> None:
    """Follow what happens to jobs."""


@command.command(cls=DeskCommand, permission="Jobs.Read", result="EventBody", is_stream=True)
@click.option("--follow", is_flag=True, help="Wait for more, until Ctrl-C.")
@click.option("--after", metavar="CURSOR", help="Go on behind an event; by default from the first that is kept.")
async def tail(operation: "Operation", follow: bool, after: str | None) -> "Answer":
    """Show events, one item for each."""
    import asyncio

    from runwick.cli.answers import Answer
    from runwick.cli.following import asked_patiently

    cursor = after
    while True:
        ask = functools.partial(operation.desk.events, cursor, PAGE)
        page = await (asked_patiently(operation, ask, LOOK_EVERY_S) if follow else ask())
        for event in page.events:
            operation.teller.item(Answer(body=event, text=functools.partial(_line, event)))
        cursor = page.cursor
        operation.interrupted = functools.partial(_end, operation, cursor)
        if page.more:
            continue
        if not follow:
            break
        await asyncio.sleep(LOOK_EVERY_S)
    return _end(operation, cursor)


def _end(operation: "Operation", cursor: str) -> "Answer":
    from runwick.cli.answers import Answer

    more = operation.next("events tail", "--after", cursor, reason="Go on behind the last event.")
    return Answer(body=None, text=lambda: f"more: --after {cursor}", next_actions=[more])


def _line(event: "EventBody") -> str:
    from runwick.cli.job_text import moment_text
    from runwick.cli.tables import terminal_text

    number = "" if event.number is None else f"execution {event.number}"
    facts = [event.what, event.job_id, event.name, f"queue {event.queue}", event.state, event.code, number]
    return terminal_text("  ".join([moment_text(event.at), *(each for each in facts if each)]))
