"""Values of process scope for attempts on several threads and an event loop.

    thread of an attempt ──┐            ┌─ plain providers: opened and closed there, one at a time
    async attempt ─────────┴─▶ keeper ──┤
                               thread   └─ async ones: its companion on the application's loop, in one task

No attempt opens them itself, so no attempt's thread, task or context variables end up in what outlives it, and a slow
one never holds up the loop.
"""

import contextlib
import contextvars
import functools
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from runwick.declarations.providers import Provider
from runwick.execution.companion import Companion, answered
from runwick.execution.scopes import ProcessScope
from runwick.execution.steps import run_at_once
from runwick.runtime.threads import Threads

T = TypeVar("T")


class SharedProcessScope:
    """Implements `runwick.execution.scopes.ProcessValues`, for callers on any thread and on `loop`.

    Args:
        providers: all that are declared.
        loop: where async ones live.
    """

    def __init__(self, providers: Mapping[Any, Provider], loop: AbstractEventLoop) -> None:
        self._companion = Companion(loop)
        self._scope = ProcessScope(providers, contextlib.nullcontext(), self._companion.visit)
        self._keeper: Final = Threads("runwick-providers", 1)
        self._context = contextvars.copy_context()
        self._is_closed = False

    async def provide(self, wanted: Any) -> Any:
        """The value of the provider of `wanted`, opened now if it is not open yet.

        Raises:
            RuntimeError: the scope is closed; whoever asks so late is a run that could not be stopped.
        """
        if wanted in self._scope.open:
            return self._scope.open[wanted]
        if self._is_closed:
            raise RuntimeError("the worker has stopped, and what lives as long as it is closed")
        return await answered(self._keep(lambda: self._scope.provide(wanted)))

    async def close(self, failure: BaseException | None) -> list[BaseException]:
        """Close what is open, last opened first; answers what was raised by it."""
        self._is_closed = True
        raised = await answered(self._keep(lambda: self._scope.close(failure)))
        self._keeper.close()
        self._companion.end()
        return raised

    def _keep(self, steps: Callable[[], Coroutine[Any, Any, T]]) -> "Future[T]":
        return self._keeper.call(functools.partial(self._context.run, lambda: run_at_once(steps())))
