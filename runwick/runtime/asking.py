"""Carries out a request that is described by a generator: it yields what the store is to do, or for how long to pause,
takes the store's answer or its error, and returns the result. One source so serves blocking and asynchronous callers.
"""

import asyncio
import time
from collections.abc import Generator
from typing import Any, Protocol, TypeVar

from runwick.contracts.stores import Act, Runs

T = TypeVar("T")
Result = TypeVar("Result")

Request = Generator[Act[Any] | float, Any, Result]
"""Yields acts, and pauses in seconds, which are answered by None."""


class RunsAsync(Protocol):
    """The half of `Runs` that an event loop needs."""

    async def run_async(self, act: Act[T]) -> T: ...


def ask(store: Runs, request: Request[Result]) -> Result:
    """Carry it out and block until it is done; raises what the request raises."""
    try:
        step = next(request)
        while True:
            answer: Any = None
            try:
                if isinstance(step, Act):
                    answer = store.run(step)
                else:
                    time.sleep(step)
            except BaseException as error:
                step = request.throw(error)
            else:
                step = request.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result


async def ask_async(store: RunsAsync, request: Request[Result]) -> Result:
    """`ask` on an event loop, which it never blocks."""
    try:
        step = next(request)
        while True:
            answer: Any = None
            try:
                if isinstance(step, Act):
                    answer = await store.run_async(step)
                else:
                    await asyncio.sleep(step)
            except BaseException as error:
                step = request.throw(error)
            else:
                step = request.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result
