"""The inline backend: attempts of one pool as tasks on the engine's own event loop. It starts no thread, no process.

It is for tests. A plain handler runs in the loop itself: while it runs nothing else does, neither other attempts nor
the renewal of leases, and its token hears of nothing. An async handler is stopped by cancelling its task; one that
swallows the cancellation runs to its end.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from runwick.contracts.outcomes import Outcome
from runwick.execution.held import Held
from runwick.execution.slots import SlotBackend


class InlineBackend(SlotBackend):
    """Implements `runwick.contracts.backends.Backend`."""

    name = "inline"

    async def stop(self) -> None:
        """Wait until nothing runs."""
        while tasks := [held.task for held in self._held.values() if held.task is not None]:
            await asyncio.wait(tasks)

    def _launch(self, held: Held) -> None:
        held.task = self._engine.create_task(self._run(held), name=f"runwick {held.attempt.kind.name}")

    async def _run(self, held: Held) -> None:
        if self._invoker.needs_loop(held.run):
            await self._run_async(held)
        else:
            self._run_blocking(held)

    def _invoke_blocking(self, held: Held) -> Outcome:
        with _outside_the_loop():
            return super()._invoke_blocking(held)

    def _interrupt(self, held: Held) -> None:
        held.interrupt()

    def _tell_engine(self, function: Callable[[], object]) -> None:
        function()


@contextlib.contextmanager
def _outside_the_loop() -> Iterator[None]:
    """Let a plain handler see no running loop, as on an executor, where its `asyncio.run` is right."""
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
