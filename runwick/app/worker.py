"""A worker inside this process, beside whatever else it does: made by `rw.worker()`, alive inside an ``async with``.

    the application's thread                       the engine's thread
      async with rw.worker(): ── start ──────────▶ check ▶ register ▶ claim, renew, settle …
        ⋮                     ◀── ready ─────────    │
        async handlers run here ◀────────────────────┤
        plain handlers in threads of their pools ◀───┘
      leave ── stop ─────────────────────────────▶ drain, within the budget
      providers of process scope are closed  ◀───  over

The engine's thread and its event loop are its own, so that nothing an application does keeps leases from being renewed
but what holds the interpreter lock. Every thread here is a daemon. A fork leaves the worker to the parent.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Final

from runwick.app.serving import Serving
from runwick.contracts.errors import InvalidArgument, RunwickError
from runwick.contracts.health import WorkerHealth
from runwick.contracts.stores import Outlook
from runwick.declarations.pools import Pool
from runwick.execution.invoke import Invoker
from runwick.health.pulse import Pulse
from runwick.runtime.forks import Forkable, notice
from runwick.runtime.threads import LoopThread
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.telemetry.logs import log_events
from runwick.worker.drain import Stop
from runwick.worker.engine import Until, Worker
from runwick.worker.tally import Tally

if TYPE_CHECKING:
    from runwick.app.runwick import Runwick

CLOSING_SHARE: Final = 0.1
"""Providers of process scope have what the drain left of the budget to close, and never less than this part of it."""

_log: Final = logging.getLogger("runwick")


class EmbeddedWorker(Forkable):
    """One worker, for one ``async with``. An application has one at a time in a process.

    Args:
        rw: whose jobs.
        pools: what to run at once; None means what the application declares.
        queues: serve only these; None means all that the pools serve.
        until: ends the worker by itself, seeing what is left.
        listen: told of the bus on which the worker says what happens; by default that is logged.
        worker_id: who it is, where that had to be known before.
    """

    def __init__(
        self,
        rw: "Runwick",
        pools: Sequence[Pool] | None = None,
        *,
        queues: Sequence[str] | None = None,
        until: Until | None = None,
        listen: Callable[[Bus], None] = log_events,
        worker_id: bytes | None = None,
    ) -> None:
        super().__init__()
        self.serving = Serving(rw, pools, queues)
        self._rw = rw
        self._until = until
        self._worker_id = worker_id
        self._bus = Bus()
        self.pulse = Pulse(self._bus, rw.clock)
        """What it last said of its health, for whoever must not look at it from another thread."""
        listen(self._bus)
        self._up: Future[None] = Future()
        self._engine: LoopThread[Outlook | None] = LoopThread(f"runwick-engine-{rw.application}", self._live)
        self._engine.ended.add_done_callback(self._ended)
        self._worker: Worker | None = None
        self._invoker: Invoker | None = None
        self._has_begun = False
        self._is_mine = True
        """Whether this process is the one that made it, and not a child."""

    # What can be seen of it ------------------------------------------------------------------------------------------

    @property
    def tally(self) -> Tally:
        """What it has done since its start.

        Raises:
            InvalidArgument: it has not begun (code ``invalid_state``).
        """
        return self._begun().tally

    @property
    def running(self) -> int:
        """How many attempts it holds, in threads and tasks; 0 when it has not begun, and in a child of its process."""
        notice()
        return self._worker.running if self._worker is not None and self._is_mine else 0

    @property
    def failure(self) -> str | None:
        """Why it cannot work any more, in one sentence; None while it can, or when it was stopped."""
        if self._engine.ended.done() and (error := self._engine.ended.exception()) is not None:
            return str(error) if isinstance(error, RunwickError) else f"{type(error).__name__}: {error}"
        return None if self._worker is None else self._worker.failure

    def health(self) -> WorkerHealth:
        """Whether it can do its work, and why not.

        Raises:
            InvalidArgument: it has not begun (code ``invalid_state``).
        """
        return self._begun().health()

    # What can be done with it ----------------------------------------------------------------------------------------

    def stop(self, urgency: Stop = Stop.DRAIN) -> None:
        """Begin to stop, as leaving does: nothing new begins, running handlers may end within the budget.

        Args:
            urgency: `Stop.CANCEL` asks running handlers to stop now; `Stop.KILL` waits no longer for them. What does
                not look at its token cannot be stopped here; it is left behind.
        """
        self._engine.call_soon(lambda: self._stop(urgency))

    async def inherit(self, predecessor: bytes) -> int:
        """See `Worker.inherit`. To be called on the engine's event loop, where the bus is heard."""
        return await self._begun().inherit(predecessor)

    async def wait(self) -> Outlook | None:
        """Wait until it has stopped, whoever stopped it. Answers what was left, if it ended by itself.

        Raises:
            Exception: what ended it, when that was an error.
        """
        return await asyncio.shield(asyncio.wrap_future(self._engine.ended)) if self._is_mine else None

    async def __aenter__(self) -> "EmbeddedWorker":
        """Check everything and begin; when this returns, the worker takes jobs.

        Raises:
            ConfigurationError: with everything that is wrong, also with the store; nothing was started.
            InvalidArgument: the application has a worker already, or this one has been used (code ``invalid_state``).
            StoreError: the store does not let it in, as while an operator drains the application.
        """
        if self._has_begun:
            raise InvalidArgument(
                "invalid_state", "this worker has been entered before; make a new one with rw.worker()"
            )
        if self._rw.at_work.setdefault("worker", self) is not self:
            raise InvalidArgument(
                "invalid_state",
                f"a worker of {self._rw!r} is at work in this process already; one worker can have several pools: "
                "rw.worker(pools=[…])",
            )
        self._has_begun = True
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        up = asyncio.wrap_future(self._up)
        up.add_done_callback(lambda told: told.cancelled() or told.exception())  # who was cancelled asks no more
        try:
            self._engine.start()
        except BaseException:
            self._rw.at_work.pop("worker", None)
            raise
        try:
            await asyncio.shield(up)
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drain and end. Being cancelled meanwhile waits no longer for what runs, and ends as well.

        Raises:
            Exception: what ended the worker before, when that was an error and nothing else is on its way.
        """
        notice()
        if not (self._is_mine and self._has_begun):
            return
        await self._leave()
        if error is None and (ended_by := self._engine.ended.exception()) is not None:
            raise ended_by

    # Its life --------------------------------------------------------------------------------------------------------

    async def _live(self) -> Outlook | None:
        """On the engine's loop, which nobody else needs while this blocks."""
        self.serving.check()
        self._bus.listen(events.WorkerReady, lambda _: self._up.set_result(None))
        self._worker, self._invoker = self._context.run(self.serving.compose, self._loop, self._bus, self._worker_id)
        return await self._worker.run(until=self._until)

    def _begun(self) -> Worker:
        if self._worker is None:
            raise InvalidArgument("invalid_state", "this worker has not begun; enter it with async with")
        return self._worker

    def _stop(self, urgency: Stop) -> None:
        if self._worker is not None:
            self._worker.stop(urgency)

    def _ended(self, ended: "Future[Outlook | None]") -> None:
        """On the engine's thread."""
        error = ended.exception()
        if self._up.done():
            if error is not None:
                # What Runwick itself says is complete without a traceback.
                trace = None if isinstance(error, RunwickError) else error
                _log.critical("the worker of %s has ended: %s", self._rw.application, error, exc_info=trace)
        elif error is not None:
            self._up.set_exception(error)
        else:
            self._up.set_result(None)

    async def _leave(self) -> None:
        """Stop, wait until the engine is over, and close what lives as long as the worker."""
        begun_s = self._rw.clock.steady_s()
        self.stop()
        ended = asyncio.wrap_future(self._engine.ended)
        cancelled: asyncio.CancelledError | None = None
        while not ended.done():
            try:
                await asyncio.wait([ended])
            except asyncio.CancelledError as error:
                cancelled = error
                self.stop(Stop.KILL)
        ended.exception()  # it is told elsewhere; asyncio need not say that nobody looked
        budget_s = self._rw.worker_options.shutdown_budget.total_seconds()
        left_s = begun_s + budget_s - self._rw.clock.steady_s()
        try:
            await self._close_providers(max(left_s, CLOSING_SHARE * budget_s))
        finally:
            self._rw.at_work.pop("worker", None)
        if cancelled is not None:
            raise cancelled

    async def _close_providers(self, within_s: float) -> None:
        if self._invoker is None:
            return
        try:
            await asyncio.wait_for(self._invoker.close_async(), within_s)
        except TimeoutError:
            _log.warning("providers of process scope had not closed after %.1f s", within_s)

    def after_fork_in_child(self) -> None:
        if self._has_begun:
            self._is_mine = False
            self._rw.at_work.pop("worker", None)
