"""A table in plain text: a header, aligned columns, and no column in which nothing is known."""

from collections.abc import Sequence
from typing import Final

UNKNOWN: Final = "–"
_GAP: Final = "  "


def lay_out_table(header: Sequence[str], rows: Sequence[Sequence[str | None]], indent: str = "  ") -> str:
    """The text of a table, without a newline at its end.

    Args:
        header: the columns' names.
        rows: one cell per column; None is shown as a dash, and a column of nothing but None is left out.
        indent: stands in front of every line.
    """
    known = [column for column in range(len(header)) if any(row[column] is not None for row in rows)]
    lines = [[header[column] for column in known], *([_cell(row[column]) for column in known] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join(
        (indent + _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))).rstrip()
        for line in lines
    )


def _cell(text: str | None) -> str:
    """Escapes what is not for a terminal: an application names its own exceptions and codes."""
    if text is None:
        return UNKNOWN
    return text if text.isprintable() else ascii(text)[1:-1]
