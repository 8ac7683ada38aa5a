"""The thread backend: attempts of one pool inside an application, beside whatever else that does.

    engine's loop ─┬─ plain handler ─▶ a thread of the pool ─────────────────┬─▶ engine's loop
                   └─ async handler ─▶ a task on the application's own loop ─┘

The engine's loop is another thread's, so that no handler keeps leases from being renewed. A run is asked to stop by its
token, and an async one by cancelling its task too. One that goes on cannot be stopped: it keeps its slot until it ends,
and if that takes longer than its grace, its lease is let go and whatever it ends in is dropped. Threads are daemons, so
no run keeps the process from ending.
"""

import asyncio
import contextlib
import contextvars
import functools
import os
from collections.abc import Callable

from runwick.contracts.ambient import Clock
from runwick.contracts.outcomes import Outcome
from runwick.execution.held import Held
from runwick.execution.invoke import Invoker
from runwick.execution.slots import SlotBackend
from runwick.runtime.threads import Threads


class ThreadBackend(SlotBackend):
    """Implements `runwick.contracts.backends.Backend`. Made where the application is, started where the engine is.

    Args:
        invoker: made with the same `loop`; may serve several pools, and who made it closes it after them.
        pool: whose slots these are; names the threads.
        concurrency: how many attempts run at once, plain and async together.
        clock: measures durations.
        loop: where async handlers run.
        cancellation_grace_s: see `SlotBackend`; so for the next.
        cleanup_budget_s: as said there.
    """

    name = "threads"

    def __init__(
        self,
        invoker: Invoker,
        pool: str,
        *,
        concurrency: int,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        cancellation_grace_s: float = 10.0,
        cleanup_budget_s: float = 10.0,
    ) -> None:
        super().__init__(
            invoker,
            pool,
            concurrency=concurrency,
            clock=clock,
            cancellation_grace_s=cancellation_grace_s,
            cleanup_budget_s=cleanup_budget_s,
        )
        self._loop = loop
        self._threads = Threads(f"runwick-{pool}", concurrency)
        self._context = contextvars.copy_context()
        self._pid = os.getpid()

    async def stop(self) -> None:
        """Let idle threads end. What still runs cannot be stopped, and nobody waits for it any longer."""
        self._threads.close()

    def _launch(self, held: Held) -> None:
        if not self._invoker.is_async(held.run):
            self._threads.call(functools.partial(self._run_blocking, held))
            return
        try:
            self._loop.call_soon_threadsafe(self._spawn, held)
        except RuntimeError:
            self._sink.unstarted(self._drop([held]))
            self._sink.failed("the event loop of its async handlers is closed")

    def _spawn(self, held: Held) -> None:
        held.task = self._loop.create_task(
            self._run_async(held), name=f"runwick {held.attempt.kind.name}", context=self._context.copy()
        )

    def _invoke_blocking(self, held: Held) -> Outcome:
        return self._context.copy().run(super()._invoke_blocking, held)

    def _interrupt(self, held: Held) -> None:
        with contextlib.suppress(RuntimeError):  # closed: no task runs there any more
            self._loop.call_soon_threadsafe(held.interrupt)

    def _tell_engine(self, function: Callable[[], object]) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # the handler forked, and this is its child coming back: it has no worker to tell anything
        with contextlib.suppress(RuntimeError):  # closed: the engine has let go of this run
            self._engine.call_soon_threadsafe(function)
