"""Runs a job's middleware around the rest of its run, and holds it to its contract: it runs the rest once, or not at
all, ends after that, and answers a result.

    layer ─ next ─▶ layer ─ next ─▶ innermost: the handler's providers, then the handler
      ▲               ▲                 │
      └──── result ───┴──── result ─────┘      whatever it raises comes the same way

A breach is remembered by the chain and not only raised, so that a middleware cannot swallow it. Which forms fit around
which is decided when the declarations are frozen.
"""

import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from inspect import CORO_CREATED, getcoroutinestate, iscoroutine
from typing import TYPE_CHECKING, Any

from runwick.contracts.results import Result, Succeeded
from runwick.declarations.middleware import MiddlewareBinding
from runwick.execution.failures import HANDLE, PROVIDE
from runwick.execution.passage import Passage
from runwick.execution.results import ContractFault, is_result
from runwick.execution.scopes import AttemptScope
from runwick.execution.steps import run_at_once

if TYPE_CHECKING:
    import asyncio

Rest = Callable[[], Coroutine[Any, Any, Result]]


async def run_chain(
    layers: Sequence[MiddlewareBinding],
    scope: AttemptScope,
    passage: Passage,
    innermost: Callable[[], Awaitable[object]],
) -> Result:
    """What the outermost layer answers.

    Args:
        layers: outermost first.
        scope: where their parameters come from.
        passage: the attempt's.
        innermost: runs the handler.

    Raises:
        ContractFault: one of them broke its contract.
        BaseException: what was raised inside and nobody caught.
    """
    chain = _Chain(layers, scope, passage, innermost)
    try:
        result = await chain.run(0)
    except Exception as error:
        if chain.fault is None or error is chain.fault:
            raise
        raise chain.fault from error
    if chain.fault is not None:
        raise chain.fault
    return result


class _Chain:
    def __init__(
        self,
        layers: Sequence[MiddlewareBinding],
        scope: AttemptScope,
        passage: Passage,
        innermost: Callable[[], Awaitable[object]],
    ) -> None:
        self._layers = layers
        self._scope = scope
        self._passage = passage
        self._innermost = innermost
        self.fault: ContractFault | None = None
        """The first breach."""

    async def run(self, depth: int) -> Result:
        """The layer at `depth` and everything inside it."""
        if depth == len(self._layers):
            value = await self._innermost()
            return value if is_result(value) else Succeeded(value)
        layer = self._layers[depth]
        self._passage.to(PROVIDE)
        arguments = await self._scope.arguments(layer.parameters)
        self._passage.to(HANDLE)
        target = layer.target().handle if isinstance(layer.target, type) else layer.target
        link = _Link(self, getattr(target, "__qualname__", repr(target)), depth + 1)
        context = self._scope.context()
        if layer.form == "generator":
            answer: object = await link.drive(target(context, **arguments))
        elif layer.form == "plain":
            answer = link.watch(lambda: target(context, link.next_plain, **arguments))
        else:
            answer = await link.watch_async(target(context, link.next_async, **arguments))
        if not is_result(answer):
            raise self.breach(link.name, _forgotten(answer))
        return answer

    def breach(self, name: str, what: str) -> ContractFault:
        """Remember that a layer broke its contract; answers what to raise."""
        fault = ContractFault(f"the middleware {name} {what}")
        if self.fault is None:
            self.fault = fault
        return fault


class _Link:
    """One layer's way to the rest."""

    def __init__(self, chain: _Chain, name: str, depth: int) -> None:
        self.name = name
        self._chain = chain
        self._depth = depth
        self._thread = threading.get_ident()
        self._is_taken = False
        self._is_over = False
        self._rest: Coroutine[Any, Any, Result] | None = None
        self._task: asyncio.Task[Any] | None = None
        """What awaits the rest, while that runs."""

    # A generator yields for the rest ----------------------------------------------------------------------------------

    async def drive(self, layer: Generator[object, Result, object]) -> object:
        """Run it, with the rest where it yields."""
        try:
            next(layer)
            try:
                result = await self._chain.run(self._depth)
            except BaseException as error:
                layer.throw(error)
            else:
                layer.send(result)
        except StopIteration as done:
            return done.value
        fault = self._chain.breach(self.name, "yielded twice; it runs the rest once")
        layer.close()
        raise fault

    # A plain one calls for it -----------------------------------------------------------------------------------------

    def next_plain(self) -> Result:
        """Run the rest, here and now."""
        if threading.get_ident() != self._thread:
            raise self._chain.breach(self.name, "called next() in another thread; call it in its own")
        self._take()
        return run_at_once(self._chain.run(self._depth))

    def watch(self, call: Callable[[], object]) -> object:
        """Call it."""
        try:
            return call()
        finally:
            self._is_over = True

    # An async one awaits it -------------------------------------------------------------------------------------------

    def next_async(self) -> Coroutine[Any, Any, Result]:
        """What runs the rest when it is awaited."""
        self._take()
        self._rest = self._run_rest()
        return self._rest

    async def watch_async(self, layer: Awaitable[object]) -> object:
        """Await it; whatever it left behind of the rest has ended when this ends."""
        try:
            answer = await layer
        except Exception:
            await self._end_rest()
            raise
        except BaseException:  # it was asked to stop: what it leaves behind is no fault of its own
            await self._end_rest(is_fault=False)
            raise
        await self._end_rest()
        return answer

    async def _run_rest(self) -> Result:
        import asyncio

        if self._is_over:  # a task that comes to it only now
            raise asyncio.CancelledError
        self._task = asyncio.current_task()
        try:
            return await self._chain.run(self._depth)
        finally:
            self._task = None

    async def _end_rest(self, *, is_fault: bool = True) -> None:
        import asyncio

        self._is_over = True
        if self._rest is None:
            return
        if getcoroutinestate(self._rest) == CORO_CREATED:
            await asyncio.sleep(0)  # a task that was to run it sees that it is too late
            self._rest.close()
        elif self._task is not None:
            await _cancelled(self._task)
        else:
            return
        if is_fault:
            self._chain.breach(self.name, "ended before next() had; await next() and return its result")

    def _take(self) -> None:
        if self._is_over:
            raise self._chain.breach(self.name, "called next() after its end")
        if self._is_taken:
            raise self._chain.breach(self.name, "called next() twice; call it once")
        self._is_taken = True


async def _cancelled(task: "asyncio.Task[Any]") -> None:
    """Cancel it and wait for its end, whoever wants to end sooner."""
    import asyncio

    task.cancel()
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([task])


def _forgotten(answer: object) -> str:
    if answer is None:
        return "returned nothing; return what next() gave, or a result such as Succeeded()"
    if iscoroutine(answer):
        answer.close()
        return "returned what it should have awaited; write return await next()"
    return f"returned {type(answer).__name__}; return what next() gave, or a result such as Succeeded(value)"
