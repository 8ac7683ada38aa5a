"""Drives a coroutine in which nothing suspends, so that one source serves threads and event loops."""

from collections.abc import Coroutine
from typing import Any, TypeVar, cast

T = TypeVar("T")


def run_at_once(steps: Coroutine[Any, Any, T]) -> T:
    """Run it to its end, which is within its first step."""
    try:
        steps.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    steps.close()
    raise RuntimeError("it suspended although nothing in it is declared async")
