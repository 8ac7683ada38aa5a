"""How problems look to a person: a headline, then one aligned, wrapped entry for each. Plain text, no colour.

::

    Runwick cannot start: 2 problems.
      invalid_pool    pool "main" subscribes to queue "imgaes", which no job uses and nothing declares. Did you mean
                      "images"?
      invalid_timing  lease_duration: V-04: …
"""

import re
import shutil
import textwrap
from collections.abc import Sequence
from typing import Final

from runwick.contracts.errors import Problem

WIDTH_WITHOUT_TERMINAL = 100
TEXT_WIDTH_MIN = 30

_NO_BREAK_SPACE: Final = "\N{NO-BREAK SPACE}"
_BEFORE_UNIT: Final = re.compile(r"(?<=[0-9]) (?=(?:ms|s|min|h)\b|×)")


def lay_out(problems: Sequence[Problem], program: str = "Runwick", width: int | None = None) -> str:
    """The text that tells a person every problem, ordered by code; it ends without a newline.

    Args:
        problems: at least one.
        program: what cannot start.
        width: columns to fill; the terminal's when not given.
    """
    width = width or terminal_columns()
    number = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    column = 2 + max(len(problem.code) for problem in problems) + 2
    lines = [f"{program} cannot start: {number}."]
    for problem in sorted(problems, key=lambda each: each.code):
        lines += _entry(problem, column, max(width - column, TEXT_WIDTH_MIN))
    return "\n".join(lines)


def terminal_columns() -> int:
    """The width of the terminal, 100 columns where there is none."""
    return shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 24)).columns


def _entry(problem: Problem, column: int, text_width: int) -> list[str]:
    """The code in its column and the text beside it; line breaks inside the text stay."""
    first, *rest = [piece for line in problem.text.splitlines() for piece in _wrapped(line, text_width)] or [""]
    head = f"  {problem.code}".ljust(column) + first
    return [head.rstrip(), *(" " * column + text for text in rest)]


def _wrapped(line: str, text_width: int) -> list[str]:
    """Break a line between words; a figure and its unit are one word."""
    glued = _BEFORE_UNIT.sub(_NO_BREAK_SPACE, _printable(line))
    pieces = textwrap.wrap(glued, text_width, break_long_words=False, break_on_hyphens=False)
    return [piece.replace(_NO_BREAK_SPACE, " ") for piece in pieces]


def _printable(line: str) -> str:
    """Escapes what is not for a terminal; the text of a failed import may hold anything."""
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
