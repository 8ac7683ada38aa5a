"""One step of an act, and the text of its statement.

Statements live one per file in `sql/`; an act names them and never builds text. The driver turns a name into text
here, executes it, and sends the rows back into the act::

    act (generator)            driver
      │  yield Step("claim_due", {...})    │
      ├──────────────────────────────────▶ │ execute
      │ ◀──────────────────────────────────┤ list of rows, or the number of rows changed when `many`
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_FOLDER = Path(__file__).parent / "sql"


class Step(NamedTuple):
    """One statement to execute inside the act's transaction."""

    statement: str
    """The name of a file in `sql/`, without its suffix."""
    parameters: Sequence[Any] | Mapping[str, Any] = ()
    """Bound values; with `many`, one sequence or mapping of values per execution."""
    many: bool = False
    """Execute once per member of `parameters`; the answer is the number of rows changed in all."""


@functools.cache
def sql(name: str) -> str:
    """The text of the statement `name`, read once per process."""
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")
