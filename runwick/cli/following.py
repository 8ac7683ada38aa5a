"""For commands that take long: a server or store that has no time for a while ends nothing."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from runwick.cli.at_desk import Operation
from runwick.cli.failures import UNAVAILABLE, exit_status_of
from runwick.contracts.errors import RunwickError

T = TypeVar("T")

PATIENCE_S: Final = 60.0


async def asked_patiently(operation: Operation, ask: Callable[[], Awaitable[T]], every_s: float) -> T:
    """The answer, however often it must be asked for.

    Args:
        operation: whose teller hears that there is none.
        ask: asks once.
        every_s: between two times.

    Raises:
        RunwickError: it is refused, or there was none for `PATIENCE_S`.
    """
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await ask()
        except RunwickError as error:
            if exit_status_of(error) != UNAVAILABLE or time.monotonic() + every_s > until_s:
                raise
            operation.teller.note(f"{error}; asking again")
        await asyncio.sleep(every_s)
