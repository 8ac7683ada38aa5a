"""One call of one function: what an act yields, and what it receives."""

from collections.abc import Generator
from typing import NamedTuple, TypeVar

import msgspec

T = TypeVar("T")


class Call(NamedTuple):
    """A function of the library, called for one application; the server runs all of it or nothing."""

    function: str
    """Its name in `lua/acts/`."""
    application: str
    """Whose keys it may touch; none: those of the store alone."""
    arguments: bytes
    """A packed list (`packed.arguments`)."""
    is_preparation: bool = False
    """It changes nothing of what its act is asked for, so that nobody need know what became of it."""


Calls = Generator[Call, msgspec.Raw, T]
"""An act under way: yields calls, receives what each answered, still packed, and returns the act's answer."""
