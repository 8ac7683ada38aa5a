"""The functions that Redis runs, as one text: a library under a name of its own for each content.

::

    lua/*.lua       the ground, in a fixed order: what later files use, earlier ones define
    lua/acts/*.lua  one function each, in a scope of its own

The name holds a hash of the content, and each function's name begins with the library's, so that processes of two
releases work side by side on one server, each with its own functions.
"""

import functools
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import redis.exceptions

from runwick.stores.redis import faults

_LUA: Final = Path(__file__).with_name("lua")
_GROUND: Final = (
    "keys",
    "permissions",
    "packing",
    "clock",
    "states",
    "names",
    "roster",
    "layout",
    "rows",
    "indexes",
    "limits",
    "lines",
    "uniqueness",
    "intake",
    "work",
    "waiting",
    "leased",
    "plain",
    "admission",
    "candidates",
    "commands",
    "trail",
    "ending",
    "closing",
    "workers",
    "looks",
    "sight",
    "pages",
    "creation",
    "walks",
    "shown",
    "gate",
    "operating",
)
_NAME_DIGITS: Final = 12


class Library:
    """A library of functions.

    Args:
        content: Lua that registers functions; each under the value of the local ``LIBRARY``, an underscore and its own
            name.
    """

    def __init__(self, content: str) -> None:
        self.name: Final = f"runwick_{hashlib.sha256(content.encode()).hexdigest()[:_NAME_DIGITS]}"
        self.text: Final = f"#!lua name={self.name}\nlocal LIBRARY = '{self.name}'\n{content}"
        """What the server loads."""

    def load(self, ask: Callable[..., Any]) -> None:
        """Have the server load it, unless somebody was faster.

        Args:
            ask: sends a command and answers what the server does.

        Raises:
            redis.exceptions.RedisError: it was not loaded.
        """
        try:
            ask("FUNCTION", "LOAD", self.text)
        except redis.exceptions.ResponseError as error:
            if not faults.is_loaded_already(error):
                raise

    def function(self, name: str) -> bytes:
        """Under which name the server knows a function of this library."""
        return f"{self.name}_{name}".encode()


def assembled(ground: Sequence[str], acts: Sequence[str]) -> str:
    """One content of many: what an act defines beside its function is seen by that act alone."""
    return "\n".join([*ground, *(f"do\n{act}\nend" for act in acts)])


def scoped(name: str, text: str) -> str:
    """A file of the ground. Where it begins with the table of its own name, nothing else of it is seen by others: the
    server allows a text no more than 200 names at once."""
    before, begins, after = text.partition(f"\nlocal {name} = {{")
    if not begins:
        return text
    table, _, rest = after.partition("\n")
    return f"{before}{begins}{table}\ndo\n{rest}\nend"


@functools.cache
def library() -> Library:
    """This release's."""
    acts = sorted((_LUA / "acts").glob("*.lua"))
    return Library(
        assembled(
            [scoped(name, (_LUA / f"{name}.lua").read_text(encoding="utf-8")) for name in _GROUND],
            [path.read_text(encoding="utf-8") for path in acts],
        )
    )
