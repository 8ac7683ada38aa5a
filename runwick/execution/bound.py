"""All that is needed to run one kind of job: how its payload is read, what is called, and what wraps that."""

import functools
from collections.abc import Coroutine
from typing import Any, NamedTuple

from runwick.contracts.context import JobContext
from runwick.contracts.jobs import Job
from runwick.declarations.catalog import Catalog, JobEntry
from runwick.declarations.handlers import HandlerBinding
from runwick.declarations.middleware import MiddlewareBinding
from runwick.declarations.upgrades import Route
from runwick.execution.chain import run_chain
from runwick.execution.failures import DECODE, HANDLE, PROVIDE, UPGRADE
from runwick.execution.passage import Passage
from runwick.execution.scopes import AttemptScope
from runwick.execution.upgrade import upgraded


class Bound(NamedTuple):
    """One kind: a job's name and the version of a stored payload."""

    entry: JobEntry
    handler: HandlerBinding
    route: Route | None
    """To the current version, from an older one."""
    middleware: tuple[MiddlewareBinding, ...]
    is_async: bool
    """Whether the handler or a middleware is."""
    needs_loop: bool
    """Whether that or a provider is."""
    is_simple: bool
    """Whether nothing but the handler is called, with nothing but the job and perhaps the context: no middleware, no
    providers, nothing async."""
    job_name: str
    """The name under which the handler takes the job."""
    context_name: str | None
    """The name under which the handler takes the context."""

    def decode(self, payload: bytes | memoryview, passage: Passage) -> Job:
        """The current record that the payload holds, or can be upgraded to."""
        passage.step = DECODE
        if self.route is None:
            job: Job = self.entry.codec.decode(payload)
            return job
        old = self.route.codec.decode(payload)
        passage.step = UPGRADE
        return upgraded(old, self.route, self.entry)

    def answer(self, job: Job, scope: AttemptScope, passage: Passage) -> Coroutine[Any, Any, object]:
        """What the handler returns, with its providers open; or what its middleware makes of that."""
        passage.may_be_interrupted_as(self.handler)
        if not self.middleware:
            return _call(self.handler, job, scope, passage)
        innermost = functools.partial(_call, self.handler, job, scope, passage)
        return run_chain(self.middleware, scope, passage, innermost)

    def call(self, job: Job, context: JobContext | None) -> object:
        """What a simple handler returns; the context is for one that takes it."""
        target = self.handler.target
        call = target().handle if isinstance(target, type) else target
        if self.context_name is None:
            return call(**{self.job_name: job})
        return call(**{self.job_name: job, self.context_name: context})


def all_bound(catalog: Catalog) -> dict[tuple[str, int], Bound]:
    """By name and version of the stored payload."""
    found = {}
    for kind, route in catalog.decodable.items():
        current = kind if route is None else route.kind
        handler, middleware = catalog.handlers[current], catalog.middleware[current]
        further = handler.parameters[1:]
        found[kind.name, kind.version] = Bound(
            catalog.jobs[current],
            handler,
            route,
            middleware,
            is_async=handler.is_async or any(each.form == "async" for each in middleware),
            needs_loop=handler.needs_loop or any(each.needs_loop for each in middleware),
            is_simple=not (handler.needs_loop or middleware or any(each.role == "provided" for each in further)),
            job_name=handler.parameters[0].name,
            context_name=next((each.name for each in further if each.role == "context"), None),
        )
    return found


async def _call(handler: HandlerBinding, job: Job, scope: AttemptScope, passage: Passage) -> object:
    passage.to(PROVIDE)
    arguments = await scope.arguments(handler.parameters, job)
    passage.to(HANDLE)
    call = handler.target().handle if isinstance(handler.target, type) else handler.target
    if handler.is_async:
        return await call(**arguments)
    passage.is_in_plain_call = True
    try:
        return call(**arguments)
    finally:
        passage.is_in_plain_call = False
