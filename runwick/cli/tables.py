"""A table in plain text: a header, aligned columns, and no column in which nothing is known.

Everything that comes from a store or a server is escaped here: an application names its own queues, errors and codes,
and none of them may move a terminal's cursor.
"""

from collections.abc import Callable, Sequence
from typing import Final

import click

UNKNOWN: Final = "–"
_GAP: Final = "  "

_COLOURS: Final = {
    "failed": "red",
    "crashed": "red",
    "error": "red",
    "warning": "yellow",
    "retrying": "yellow",
    "paused": "yellow",
    "succeeded": "green",
    "running": "cyan",
    "passed": "green",
    "unverified": "yellow",
}
"""Words that stand out where a terminal shows colours. They say it without them too."""


def lay_out_table(header: Sequence[str], rows: Sequence[Sequence[str | None]], indent: str = "  ") -> str:
    """The text of a table, without a newline at its end.

    Args:
        header: the columns' names.
        rows: one cell per column; None is shown as a dash, and a column of nothing but None is left out.
        indent: stands in front of every line.
    """
    known = [column for column in range(len(header)) if any(row[column] is not None for row in rows)]
    names = [header[column] for column in known]
    cells = [[_cell(row[column]) for column in known] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    lines = [(names, _bold), *((line, painted) for line in cells)]
    return "\n".join(indent + _line(line, widths, paint) for line, paint in lines)


def painted(word: str) -> str:
    """The word in its colour, if it has one. Whether colours are shown is decided where it is printed."""
    colour = _COLOURS.get(word)
    return word if colour is None else click.style(word, fg=colour)


def terminal_text(text: str) -> str:
    """The text with everything escaped that is not for a terminal; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode() for each in text
    )


def _line(cells: Sequence[str], widths: Sequence[int], paint: Callable[[str], str]) -> str:
    *before, last = [paint(cell) + " " * (width - len(cell)) for cell, width in zip(cells, widths, strict=True)] or [""]
    return _GAP.join([*before, last]).rstrip()


def _bold(word: str) -> str:
    return click.style(word, bold=True)


def _cell(text: str | None) -> str:
    if text is None:
        return UNKNOWN
    return text if text.isprintable() else ascii(text)[1:-1]
