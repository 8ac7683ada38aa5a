"""How systems that live in an event loop are given the handlers' bodies.

Their documentation asks for coroutine functions, and for plain functions, which they run in a thread, where the work
would block the loop.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

NEVER_BLOCKING: Final = ("nothing", "stamp")
"""Kinds that are over at once."""


def suited(kind: str, body: Callable[..., None]) -> Callable[..., Any]:
    """The body as a coroutine function if it never blocks, else as it is."""
    if kind not in NEVER_BLOCKING:
        return body

    @functools.wraps(body)
    async def awaited(*values: Any, **named: Any) -> None:
        body(*values, **named)

    return awaited
