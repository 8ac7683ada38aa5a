"""How JSON that a store kept beside a row is read again when it may be damaged.

What it held is then not there, and nothing else: a list with one such row still has the row and all the others.
"""

from typing import TypeVar

import msgspec

T = TypeVar("T")


def maybe_read(text: str | bytes | None, wanted: type[T]) -> T | None:
    """What was kept; None where nothing was, or where it cannot be read (any more)."""
    try:
        return None if text is None else msgspec.json.decode(text, type=wanted)
    except msgspec.DecodeError:  # of another form as well
        return None
