"""What commands that list share: the options that say which page, and the line that leads to the next one."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from runwick.cli.answers import NextAction
    from runwick.cli.at_desk import Operation

F = TypeVar("F", bound=Callable[..., Any])


def page_options(command: F) -> F:
    """Give a command the options ``--cursor`` and ``--limit``."""
    limit = click.option(
        "--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="How many at most."
    )
    cursor = click.option("--cursor", metavar="TEXT", help="Where the page before ended; it was printed there.")
    return limit(cursor(command))


def more_text(cursor: str | None) -> str:
    """The line behind a page that is not the last, with the line break before it."""
    return "" if cursor is None else f"\nmore: --cursor {cursor}"


def next_page(operation: "Operation", cursor: str | None) -> "list[NextAction]":
    """The command that reads the page behind this one, with the options of this one."""
    from runwick.cli.again import words_again

    if cursor is None:
        return []
    ctx = click.get_current_context()
    again = words_again(ctx, but=("cursor",))
    return [operation.next(operation.teller.command, *again, "--cursor", cursor, reason="Read the next page.")]
