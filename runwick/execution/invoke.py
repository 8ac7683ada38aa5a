"""One attempt from its first to its last step; `Invoker.invoke` is its life, read from top to bottom.

    begun ─▶ find ─▶ decode, upgrade ─▶ open providers ─▶ handler ─▶ encode the result ─▶ close providers ─▶ outcome
                                        └── inside middleware, where there is any ──┘

The same source serves both callers: an event loop awaits it, an executor drives it blocking. It knows no store and no
lease, never raises, and cannot stop a handler that neither returns nor can be interrupted.
"""

import contextlib
import contextvars
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from runwick.contracts.ambient import Clock
from runwick.contracts.cancelling import Cancellation, CancellationCause
from runwick.contracts.errors import JobCancelled
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.declarations.catalog import Catalog
from runwick.declarations.providers import Provider
from runwick.execution.bound import Bound, all_bound
from runwick.execution.cancellation import NEVER
from runwick.execution.context import RunContext
from runwick.execution.failures import CLOSE, ENCODE, HANDLE, Step, failed, is_cancelled, timed_out
from runwick.execution.metering import End, Meter, Stopwatch, unmeasured
from runwick.execution.own_loop import OwnLoop
from runwick.execution.passage import Passage
from runwick.execution.results import value_of
from runwick.execution.run import Run
from runwick.execution.scopes import AttemptScope, ProcessScope, ProcessValues, Visit, directly
from runwick.execution.steps import run_at_once
from runwick.wire.profile import encode_result

if TYPE_CHECKING:
    import asyncio

_log = logging.getLogger(__name__)

_SUCCEEDED: Final = OutcomeKind.SUCCEEDED


class Invoker:
    """Runs attempts of one catalog in this process and owns what outlives them: process scope and event loop.

    Args:
        catalog: what the application declares.
        clock: marks the begin and measures wall time.
        record_usage: whether outcomes say what the attempt cost.
        begun: called in the moment an attempt begins; its execution time counts from there.
        moved: hears of each change of step from `Step.PROVIDE` on, where `invoke` is not told somebody else. It may
            call `interrupt`. A step at which a simple handler has nothing to do is left out.
        alone: whether attempts have the process to themselves, one at a time. If not, only their wall time is known,
            for nothing else can be attributed to one of them.
        measure: begins to measure an attempt that has the process to itself; without one, as `Meter` does.
        loop: where everything async happens when attempts come from several threads. Without one, all attempts belong
            to the loop of their `invoke`, or to one thread that has none.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        clock: Clock,
        record_usage: bool,
        begun: Callable[[], None] | None = None,
        moved: Callable[[Step], None] | None = None,
        alone: bool = True,
        measure: Callable[[], End] | None = None,
        loop: "asyncio.AbstractEventLoop | None" = None,
    ) -> None:
        self._application = catalog.application
        self._bound = all_bound(catalog)
        self._providers = catalog.providers
        self._process = _process_values(catalog.providers, alone, loop)
        self._alone = alone
        self._loop = loop
        self._clock = clock
        self._measure = _measuring(clock, record_usage, alone, measure)
        self._begun = begun
        self._moved = moved
        self._own_loop = OwnLoop()
        self._passage: Passage | None = None
        """Of the attempt that has the process to itself, or had it last."""

    async def invoke(
        self,
        run: Run,
        payload: bytes | memoryview,
        visit: Visit = directly,
        *,
        token: Cancellation = NEVER,
        moved: Callable[[Step], None] | None = None,
    ) -> Outcome:
        """Run one attempt and say what it ended in. Suspends only where its handler, its middleware or its providers
        are async.

        Args:
            run: the attempt's facts.
            payload: the stored bytes.
            visit: awaits what is async in its providers.
            token: tells when it is asked to stop.
            moved: hears of its steps.
        """
        passage = self._start(moved)
        end = self._measure()
        begun_at_ms = self._begin()
        scope = AttemptScope(
            self._process, self._providers, lambda: RunContext(self._application, run, bound.entry, job, token), visit
        )
        result: bytes | None = None
        failure: BaseException | None = None
        try:
            try:
                bound = self._find(run)
                job = bound.decode(payload, passage)
                answer = await bound.answer(job, scope, passage)
                passage.to(ENCODE)
                result = encode_result(value_of(answer))
            except BaseException as error:
                failure = error
            step = passage.step
            passage.to(CLOSE)
        except JobCancelled as late:  # it was interrupted in the moment in which it ended, and that can happen once
            step, failure = passage.step, late
            passage.to(CLOSE)
        causes = passage.interrupted if failure is None else self._causes(token, passage, failure)
        raised = await scope.close(failure)
        usage = end()
        if failure is None and raised:
            step, failure = CLOSE, raised.pop(0)
        if failure is None:
            outcome = Outcome(_SUCCEEDED, result=result, usage=usage, begun_at_ms=begun_at_ms)
        else:
            outcome = failed(run, step, failure, raised, causes | token.causes, usage, begun_at_ms)
        # An error holds this frame through its traceback. Letting go of it here frees what the handler's frames hold
        # now, not when the collector comes by.
        failure = None
        raised.clear()
        return timed_out(outcome) if token.is_set() and CancellationCause.TIMEOUT in token.causes else outcome

    def _invoke_simply(
        self,
        bound: Bound,
        run: Run,
        payload: bytes | memoryview,
        token: Cancellation,
        moved: Callable[[Step], None] | None,
    ) -> Outcome:
        """`invoke` for a simple handler: the same life, without all that could suspend or would have to be closed."""
        passage = self._start(moved)
        end = self._measure()
        begun_at_ms = self._begin()
        result: bytes | None = None
        failure: BaseException | None = None
        try:
            try:
                job = bound.decode(payload, passage)
                passage.may_be_interrupted_as(bound.handler)
                takes = bound.context_name is not None
                context = RunContext(self._application, run, bound.entry, job, token) if takes else None
                passage.to(HANDLE)
                answer = bound.call(job, context)
                if answer is not None:
                    passage.to(ENCODE)
                    result = encode_result(value_of(answer))
            except BaseException as error:
                failure = error
            step = passage.step
            passage.to(CLOSE)
        except JobCancelled as late:  # as above
            step, failure = passage.step, late
            passage.to(CLOSE)
        usage = end()
        if failure is None:
            outcome = Outcome(_SUCCEEDED, result=result, usage=usage, begun_at_ms=begun_at_ms)
        else:
            causes = self._causes(token, passage, failure) | token.causes
            outcome = failed(run, step, failure, (), causes, usage, begun_at_ms)
        failure = None
        return timed_out(outcome) if token.is_set() and CancellationCause.TIMEOUT in token.causes else outcome

    def invoke_blocking(
        self,
        run: Run,
        payload: bytes | memoryview,
        *,
        token: Cancellation = NEVER,
        moved: Callable[[Step], None] | None = None,
    ) -> Outcome:
        """`invoke` for a caller without an event loop; each attempt has context variables of its own.

        What is async runs on the invoker's `loop`, which may be any thread's; only a plain handler can be called then.
        Without one it runs on a loop that lives as long as the invoker and stands still between such attempts; so
        does a plain handler that needs an async provider, which therefore cannot start a loop of its own.
        """
        context = contextvars.copy_context()
        bound = self._bound.get((run.name, run.version))
        if bound is not None and bound.is_simple:
            return context.run(self._invoke_simply, bound, run, payload, token, moved)
        if bound is None or not bound.needs_loop:
            return context.run(run_at_once, self.invoke(run, payload, token=token, moved=moved))
        if self._loop is None:
            return self._own_loop.run(self.invoke(run, payload, token=token, moved=moved), context)
        from runwick.execution.companion import Companion

        companion = Companion(self._loop)
        try:
            return context.run(run_at_once, self.invoke(run, payload, companion.visit, token=token, moved=moved))
        finally:
            companion.end()

    def interrupt(self, causes: CancellationCause, *, insist: bool) -> None:
        """Stop the running attempt if it may be interrupted; at most once. For a signal handler in its thread, where
        attempts have the process to themselves.

        A plain handler gets `JobCancelled`, here and now; of an async one the task is cancelled. It happens only while
        providers are opened, middleware or the handler runs.

        Args:
            causes: why.
            insist: also where the handler takes the context and could see it for itself, unless it asked for
                ``interrupt="token"``. Otherwise only a handler that takes none.

        Raises:
            JobCancelled: into whatever the signal interrupted.
        """
        passage = self._passage
        if passage is None or not passage.lets_through(causes, insist=insist):
            return
        task = self._own_loop.task
        if task is None or passage.is_in_plain_call:
            passage.was_raised = True
            raise JobCancelled(causes)
        task.get_loop().call_soon_threadsafe(self._cancel_task, passage, task)

    @property
    def was_interrupted(self) -> bool:
        """Whether `interrupt` raised anything in the last attempt: whatever that used may be left half done."""
        return self._passage is not None and self._passage.was_raised

    def needs_loop(self, run: Run) -> bool:
        """Whether anything in this attempt is async."""
        bound = self._bound.get((run.name, run.version))
        return bound is not None and bound.needs_loop

    def is_async(self, run: Run) -> bool:
        """Whether its handler or a middleware is."""
        bound = self._bound.get((run.name, run.version))
        return bound is not None and bound.is_async

    def takes_context(self, run: Run) -> bool:
        """Whether its handler can see for itself that it is asked to stop."""
        bound = self._bound.get((run.name, run.version))
        return bound is not None and bound.handler.takes_context

    def may_be_interrupted(self, run: Run) -> bool:
        """Whether its handler may be interrupted at all."""
        bound = self._bound.get((run.name, run.version))
        return bound is not None and bound.handler.interrupt == "raise"

    def close(self) -> None:
        """Close what has process scope, then the loop. For callers of `invoke_blocking`."""
        closing = self.close_async()
        if self._own_loop.is_open:
            self._own_loop.run(closing, contextvars.copy_context())
            self._own_loop.close()
        else:
            run_at_once(closing)

    async def close_async(self) -> None:
        """Close what has process scope. For callers of `invoke`, on the same loop."""
        for error in await self._process.close(None):
            _log.warning("a provider of process scope failed when it was closed", exc_info=error)

    def _find(self, run: Run) -> Bound:
        try:
            return self._bound[run.name, run.version]
        except KeyError:
            raise LookupError(f"no handler for {run.name} version {run.version} is loaded here") from None

    def _begin(self) -> int:
        if self._begun is not None:
            self._begun()
        return self._clock.now_ms()

    def _start(self, moved: Callable[[Step], None] | None) -> Passage:
        passage = Passage(moved or self._moved)
        if self._alone:
            self._passage = passage
        return passage

    def _causes(self, token: Cancellation, passage: Passage, failure: BaseException) -> CancellationCause:
        """Why the attempt is asked to stop, besides what the token says; and let its task go on undisturbed."""
        causes = passage.interrupted
        if not is_cancelled(failure):
            return causes
        import asyncio

        try:
            task = asyncio.current_task()
        except RuntimeError:
            return causes
        if task is not None and task.cancelling() > 0:
            while task.uncancel() > 0:
                pass
            if not self._alone and not token.is_set():  # nobody of ours: its loop is ending
                return CancellationCause.SHUTDOWN
        return causes

    @staticmethod
    def _cancel_task(passage: Passage, task: "asyncio.Task[None]") -> None:
        if passage.may_stop:
            task.cancel()


def _measuring(clock: Clock, record_usage: bool, alone: bool, measure: Callable[[], End] | None) -> Callable[[], End]:
    if not record_usage:
        return unmeasured
    return (measure or Meter(clock).start) if alone else Stopwatch(clock).start


def _process_values(
    providers: Mapping[Any, Provider], alone: bool, loop: "asyncio.AbstractEventLoop | None"
) -> ProcessValues:
    if alone:
        return ProcessScope(providers, contextlib.nullcontext())
    # Imported here: an executor without async handlers never loads asyncio.
    if loop is None:
        import asyncio

        return ProcessScope(providers, asyncio.Lock())
    from runwick.execution.shared import SharedProcessScope

    return SharedProcessScope(providers, loop)
