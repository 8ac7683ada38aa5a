"""One attempt from its first to its last step; `Invoker.invoke` is its life, read from top to bottom.

    begun ─▶ find ─▶ decode ─▶ open providers ─▶ handler ─▶ encode the result ─▶ close providers ─▶ outcome

The same source serves both callers: an event loop awaits it, an executor drives it blocking. It knows no store and no
lease, never raises, and cannot stop a handler that does not return.
"""

import contextlib
import contextvars
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from runwick.contracts.ambient import Clock
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.declarations.catalog import Catalog, JobEntry
from runwick.declarations.handlers import HandlerBinding
from runwick.declarations.providers import Provider
from runwick.execution.context import RunContext
from runwick.execution.failures import Step, described, verdict
from runwick.execution.metering import End, Meter, Stopwatch, unmeasured
from runwick.execution.run import Run
from runwick.execution.scopes import AttemptScope, ProcessScope, ProcessValues, Visit, directly
from runwick.execution.steps import run_at_once
from runwick.wire.profile import encode_result

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Invoker:
    """Runs attempts of one catalog in this process and owns what outlives them: process scope and event loop.

    Args:
        catalog: what the application declares.
        clock: marks the begin and measures wall time.
        record_usage: whether outcomes say what the attempt cost.
        begun: called in the moment an attempt begins; its execution time counts from there.
        alone: whether attempts have the process to themselves, one at a time. If not, only their wall time is known,
            for nothing else can be attributed to one of them.
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
        alone: bool = True,
        loop: "asyncio.AbstractEventLoop | None" = None,
    ) -> None:
        self._application = catalog.application
        self._bound = {
            (kind.name, kind.version): (catalog.jobs[kind], binding) for kind, binding in catalog.handlers.items()
        }
        self._providers = catalog.providers
        self._process = _process_values(catalog.providers, alone, loop)
        self._alone = alone
        self._loop = loop
        self._clock = clock
        self._measure = _measuring(clock, record_usage, alone)
        self._begun = begun
        self._runner: asyncio.Runner | None = None

    async def invoke(self, run: Run, payload: bytes | memoryview, visit: Visit = directly) -> Outcome:
        """Run one attempt and say what it ended in. Suspends only where its handler or its providers are async.

        `visit` awaits what is async in its providers.
        """
        end = self._measure()
        begun_at_ms = self._begin()
        scope = AttemptScope(
            self._process, self._providers, lambda: RunContext(self._application, run, entry, job), visit
        )
        step = Step.FIND
        result: bytes | None = None
        failure: BaseException | None = None
        try:
            entry, binding = self._find(run)
            step = Step.DECODE
            job = entry.codec.decode(payload)
            step = Step.PROVIDE
            arguments = await scope.arguments(binding.parameters, job)
            step = Step.HANDLE
            value = _handler_of(binding)(**arguments)
            if binding.is_async:
                value = await value
            step = Step.ENCODE
            result = encode_result(value)
        except BaseException as error:
            failure = error
        raised = await scope.close(failure)
        usage = end()
        if failure is None and raised:
            step, failure = Step.CLOSE, raised.pop(0)
        if failure is None:
            return Outcome(OutcomeKind.SUCCEEDED, result=result, usage=usage, begun_at_ms=begun_at_ms)
        kind, code = verdict(step, failure, can_be_stopped=not self._alone)
        detail = described(failure, raised)
        # An error holds this frame through its traceback. Letting go of it here frees what the handler's frames hold
        # now, not when the collector comes by.
        failure = None
        raised.clear()
        return Outcome(kind, code, detail, usage=usage, begun_at_ms=begun_at_ms)

    def invoke_blocking(self, run: Run, payload: bytes | memoryview) -> Outcome:
        """`invoke` for a caller without an event loop; each attempt has context variables of its own.

        What is async runs on the invoker's `loop`, which may be any thread's; only a plain handler can be called then.
        Without one it runs on a loop that lives as long as the invoker and stands still between such attempts; so
        does a plain handler that needs an async provider, which therefore cannot start a loop of its own.
        """
        context = contextvars.copy_context()
        if not self.needs_loop(run):
            return context.run(run_at_once, self.invoke(run, payload))
        if self._loop is None:
            return self._run_on_loop(self.invoke(run, payload), context)
        from runwick.execution.companion import Companion

        companion = Companion(self._loop)
        try:
            return context.run(run_at_once, self.invoke(run, payload, companion.visit))
        finally:
            companion.end()

    def needs_loop(self, run: Run) -> bool:
        """Whether anything in this attempt is async."""
        bound = self._bound.get((run.name, run.version))
        return bound is not None and bound[1].needs_loop

    def is_async(self, run: Run) -> bool:
        """Whether its handler is."""
        bound = self._bound.get((run.name, run.version))
        return bound is not None and bound[1].is_async

    def close(self) -> None:
        """Close what has process scope, then the loop. For callers of `invoke_blocking`."""
        closing = self.close_async()
        if self._runner is None:
            run_at_once(closing)
            return
        self._run_on_loop(closing, contextvars.copy_context())
        self._runner.close()
        self._runner = None

    async def close_async(self) -> None:
        """Close what has process scope. For callers of `invoke`, on the same loop."""
        for error in await self._process.close(None):
            _log.warning("a provider of process scope failed when it was closed", exc_info=error)

    def _find(self, run: Run) -> tuple[JobEntry, HandlerBinding]:
        try:
            return self._bound[run.name, run.version]
        except KeyError:
            raise LookupError(f"no handler for {run.name} version {run.version} is loaded here") from None

    def _begin(self) -> int:
        if self._begun is not None:
            self._begun()
        return self._clock.now_ms()

    def _run_on_loop(self, life: Coroutine[Any, Any, T], context: contextvars.Context) -> T:
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

        task = loop.create_task(live(), context=context)
        task.add_done_callback(lambda _: loop.stop())
        while not task.done():
            try:
                loop.run_forever()  # anybody on it may stop it, so it may end before the attempt
            except (SystemExit, KeyboardInterrupt) as error:
                # From a task that the handler started, or from a signal: it stopped the loop under the attempt.
                # Before the first step it was an earlier handler's.
                if begun and isinstance(error, KeyboardInterrupt):
                    task.cancel()
        if not ended:
            task.result()  # an earlier handler's task cancelled it before its first step: this process is spent
        return ended[0]


def _handler_of(binding: HandlerBinding) -> Callable[..., Any]:
    """What to call: the function, or the method of an instance of this attempt's own."""
    target = binding.target
    return target().handle if isinstance(target, type) else target


def _measuring(clock: Clock, record_usage: bool, alone: bool) -> Callable[[], End]:
    if not record_usage:
        return unmeasured
    return Meter(clock).start if alone else Stopwatch(clock).start


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
