"""The event loop of an executor: it runs while an attempt needs it, and stands still in between."""

import contextvars
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class OwnLoop:
    """Made at first need: an executor without async handlers never loads asyncio."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self.task: asyncio.Task[None] | None = None
        """What runs on it now."""

    @property
    def is_open(self) -> bool:
        """Whether it was ever needed."""
        return self._runner is not None

    def run(self, life: Coroutine[Any, Any, T], context: contextvars.Context) -> T:
        """Run it to its end, whatever is done to the loop and to the task meanwhile."""
        import asyncio

        if self._runner is None:
            self._runner = asyncio.Runner()
        loop = self._runner.get_loop()
        begun, ended = False, list[T]()

        async def live() -> None:
            nonlocal begun
            begun = True
            # Kept here and not by the task: a handler can cancel that without waiting for anything afterwards.
            ended.append(await life)

        task = self.task = loop.create_task(live(), context=context)
        task.add_done_callback(lambda _: loop.stop())
        while not task.done():
            try:
                loop.run_forever()  # anybody on it may stop it, so it may end before the attempt
            except (SystemExit, KeyboardInterrupt) as error:
                # From a task that the handler started, or from a signal: it stopped the loop under the attempt.
                # Before the first step it was an earlier handler's.
                if begun and isinstance(error, KeyboardInterrupt):
                    task.cancel()
        self.task = None
        if not ended:
            task.result()  # an earlier handler's task cancelled it before its first step: this process is spent
        return ended[0]

    def close(self) -> None:
        """Close it."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None
