"""Small catalogs for the tests of this room, declared as an application declares them."""

import sys
from collections.abc import Callable
from typing import Any

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.jobs import Job, JobSettings, job
from runwick.contracts.states import Priority
from runwick.declarations.catalog import Catalog
from runwick.declarations.declarations import Declarations
from runwick.declarations.handlers import DeclaredHandler, Interrupt
from runwick.declarations.middleware import DeclaredMiddleware
from runwick.declarations.providers import DeclaredProvider
from runwick.execution.invoke import Invoker
from runwick.execution.run import Run
from runwick.runtime.ambient import SystemClock
from tests.attempts import an_attempt


@job("reports.build")
class BuildReport(Job):
    """What most tests run."""

    pages: int = 1


@job("reports.drop")
class DropReport(Job):
    """A second kind."""

    pages: int = 1


PAYLOAD = b'{"pages":3}'


def a_catalog(
    *handlers: Callable[..., Any],
    attempt: tuple[Callable[..., Any], ...] = (),
    process: tuple[Callable[..., Any], ...] = (),
    middleware: tuple[Callable[..., Any], ...] = (),
    interrupt: Interrupt = "raise",
) -> Catalog:
    """The catalog of these handlers, what wraps all of them, and the providers of each scope."""
    local_names = sys._getframe(1).f_locals
    declarations = Declarations("shop", JobSettings(), lambda *_: [], lambda *_: [])
    for handler in handlers:
        declarations.add_handler(DeclaredHandler(handler, local_names, interrupt))
    for each in middleware:
        declarations.add_middleware(DeclaredMiddleware(each, local_names), None)
    for scope, sources in (("attempt", attempt), ("process", process)):
        for source in sources:
            declarations.add_provider(DeclaredProvider(source, scope, local_names))
    return declarations.freeze()


def an_invoker(catalog: Catalog, **changes: Any) -> Invoker:
    """An invoker that measures nothing, unless changed."""
    return Invoker(catalog, **{"clock": SystemClock(), "record_usage": False, **changes})


def a_run(name: str = "reports.build", **changes: Any) -> Run:
    """The run of an attempt of this kind."""
    return Run.of(an_attempt(**{"kind": Kind(name, 1), "lane": Lane("reports", Priority.LOW), **changes}))
