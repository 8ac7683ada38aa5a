"""Three ways to tell what a command found: to people, as the API's JSON (``--output json``), or as one envelope a line
(``--agent``). Both options may stand before the command or behind it. It loads click alone.
"""

import enum
import itertools
import os
from collections.abc import Sequence
from typing import Any, Final

import click


class Mode(enum.Enum):
    """How a command tells."""

    PEOPLE = "text"
    JSON = "json"
    AGENT = "agent"


_CHOSEN: Final = "runwick.cli.mode"
"""Where click's shared notes of one call keep what was chosen."""


def mode_options() -> list[click.Parameter]:
    """New options that choose the mode, for a command or the group of all."""
    return [
        click.Option(
            ["--output"],
            type=click.Choice([Mode.PEOPLE.value, Mode.JSON.value]),
            expose_value=False,
            callback=_choose_output,
            help="For people, or the API's JSON for programs.",
        ),
        click.Option(
            ["--agent"],
            is_flag=True,
            expose_value=False,
            callback=_choose_agent,
            help="For agents: one JSON envelope on one line, no prompts, and changes need the expected revision.",
        ),
    ]


def chosen_mode(ctx: click.Context) -> Mode:
    """The mode of this call."""
    mode: Mode = ctx.meta.get(_CHOSEN, Mode.PEOPLE)
    return mode


def written_mode(arguments: Sequence[str]) -> Mode:
    """The mode that a command line asks for, also one that cannot be read otherwise."""
    words = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    if "--agent" in words:
        return Mode.AGENT
    is_json = "--output=json" in words or ("--output", "json") in itertools.pairwise(words)
    return Mode.JSON if is_json else Mode.PEOPLE


def chosen_color() -> bool | None:
    """Whether to write in colour: as NO_COLOR or FORCE_COLOR say, else None, which is at a terminal only."""
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR", "0") not in ("", "0") else None


def _choose_output(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    if value is not None:
        _choose(ctx, Mode(value))


def _choose_agent(ctx: click.Context, parameter: click.Parameter, value: bool) -> Any:
    if value:
        _choose(ctx, Mode.AGENT)


def _choose(ctx: click.Context, mode: Mode) -> None:
    if ctx.meta.setdefault(_CHOSEN, mode) is not mode:
        raise click.UsageError("--agent and --output cannot be combined, and --output takes one value.")
