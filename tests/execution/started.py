"""An inline backend that is started, and what its tests let handlers wait for."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from runwick.contracts.ambient import Clock
from runwick.declarations.handlers import Interrupt
from runwick.execution.inline import InlineBackend
from runwick.runtime.ambient import SystemClock
from tests.execution.declared import BuildReport, a_catalog, an_invoker
from tests.execution.heard import DEADLINE_S, Heard


class Gate:
    """A handler that waits until it is let through, and notes what it got."""

    def __init__(self) -> None:
        self.running = 0
        self.open = asyncio.Event()
        self.entered = asyncio.Event()

    async def handle(self, job: BuildReport) -> int:
        self.running += 1
        self.entered.set()
        await self.open.wait()
        return job.pages


def on_a_loop(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))


async def started(
    handler: Callable[..., Any],
    *,
    attempt: tuple[Callable[..., Any], ...] = (),
    interrupt: Interrupt = "raise",
    concurrency: int = 2,
    clock: Clock | None = None,
    grace_s: float = 10.0,
    cleanup_s: float = 10.0,
) -> tuple[InlineBackend, Heard]:
    """A backend that runs this handler, with these providers of attempt scope, and its sink."""
    clock = clock or SystemClock()
    catalog = a_catalog(handler, attempt=attempt)
    bindings = {kind: dataclasses.replace(each, interrupt=interrupt) for kind, each in catalog.handlers.items()}
    catalog = dataclasses.replace(catalog, handlers=bindings)
    backend = InlineBackend(
        an_invoker(catalog, clock=clock, record_usage=True, alone=False),
        "main",
        concurrency=concurrency,
        clock=clock,
        cancellation_grace_s=grace_s,
        cleanup_budget_s=cleanup_s,
    )
    heard = Heard()
    await backend.start(heard)
    return backend, heard
