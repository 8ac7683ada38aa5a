"""A command line once more: what was given to a command, as words that can be given to it again."""

from collections.abc import Collection
from typing import Any

import click

from runwick.cli.commands import PLACE
from runwick.cli.moments import DURATION, MOMENT
from runwick.management.desk.shown import time_text


def words_again(ctx: click.Context, *, but: Collection[str] = ()) -> list[str]:
    """Arguments and options that were given, but for those that say where to work, which the place knows itself.

    Args:
        ctx: of the command.
        but: names of parameters that are left out as well.
    """
    words: list[str] = []
    for parameter in ctx.command.params:
        name = parameter.name or ""
        source = ctx.get_parameter_source(name)
        if name in but or name in PLACE or source is not click.core.ParameterSource.COMMANDLINE:
            continue
        words += _words(parameter, ctx.params.get(name))
    return words


def _words(parameter: click.Parameter, value: Any) -> list[str]:
    if isinstance(parameter, click.Argument):
        return [] if value is None else [str(value)]
    flag = parameter.opts[0]
    if isinstance(value, bool):
        return [flag] if value else []
    texts = value if isinstance(value, tuple) else () if value is None else (value,)
    return [word for text in texts for word in (flag, _text(parameter, text))]


def _text(parameter: click.Parameter, value: Any) -> str:
    if parameter.type is MOMENT:
        return time_text(value)
    if parameter.type is DURATION:
        return f"{value}ms"
    text = str(getattr(value, "name", value))
    return "-" if text == "<stdin>" else text
