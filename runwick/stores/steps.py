"""One step of an act, and the texts of a store's statements.

Statements live one per file in the store's `sql/`; an act names them and never builds text. The driver turns a name
into text, executes it, and sends the rows back into the act::

    act (generator)            driver
      │  yield Step("claim_ready", …)      │
      ├──────────────────────────────────▶ │ execute
      │ ◀──────────────────────────────────┤ list of rows, or the number of rows changed when `many`
"""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")


class Step(NamedTuple):
    """One statement to execute inside the act's transaction."""

    statement: str
    """The name of a file in `sql/`, without its suffix."""
    parameters: Sequence[Any] | Mapping[str, Any] = ()
    """Bound values; with `many`, one sequence or mapping of values per execution."""
    many: bool = False
    """Execute once per member of `parameters`; the answer is the number of rows changed in all."""


class Preparation(Step):
    """A step that changes nothing of what its act is asked for: it reads, or makes a name known.

    Where each step is a transaction of its own, an act whose later step is refused was not applied if only such steps
    came before; otherwise nobody knows.
    """

    __slots__ = ()


class Trial(Preparation):
    """A step that does all its act is asked for, or nothing of it; its act goes on only after nothing."""

    __slots__ = ()


Steps = Generator[Step, Any, T]
"""An act under way: yields steps, receives their answers, returns the act's answer."""


class Statements:
    """The texts of the statements in one folder, each read once per process."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        self._texts: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """The text of the statement `name`."""
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = (self._folder / f"{name}.sql").read_text(encoding="utf-8")
        return text
