"""What a worker in this process is to serve: which pools, whether that can work at all, and the parts it takes."""

import sys
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from runwick.app.soundness import sound_store, store_problem
from runwick.config.check import check_pools
from runwick.config.serving import served_pools
from runwick.contracts.errors import ConfigurationError, Problem, StoreError
from runwick.declarations.pools import Pool
from runwick.execution.invoke import Invoker
from runwick.execution.threads import ThreadBackend
from runwick.telemetry.bus import Bus
from runwick.worker.engine import Worker
from runwick.worker.pools import ServedPool

if TYPE_CHECKING:
    from runwick.app.runwick import Runwick


class Composition(NamedTuple):
    """An engine that is ready to run."""

    worker: Worker
    invoker: Invoker
    """Owns the providers of process scope; to be closed after the worker, on the loop that it was made for."""


class Serving:
    """One application's pools.

    Args:
        rw: whose jobs.
        pools: what to run at once; None means what the application declares.
        queues: serve only these; None means all that the pools serve.
    """

    def __init__(self, rw: "Runwick", pools: Sequence[Pool] | None, queues: Sequence[str] | None) -> None:
        self._rw = rw
        self._wanted = pools
        self._queues = queues

    @property
    def pools(self) -> list[Pool]:
        """Those that are served, each with its queues.

        Raises:
            ConfigurationError: the declarations are wrong.
        """
        return self._served()[0]

    def check(self) -> None:
        """Check everything, the store included, and start nothing. It blocks.

        Raises:
            ConfigurationError: with everything that is wrong.
        """
        problems = [*self._rw.problems(), *self._pool_problems()]
        if problems:
            sound_store(self._rw, problems)  # what is wrong with the store is told as well
        else:
            try:
                self._rw.store.check()
            except StoreError as refused:
                problems.append(store_problem(refused))
        if problems:
            raise ConfigurationError(list(dict.fromkeys(problems)))

    def compose(self, loop: AbstractEventLoop, bus: Bus, worker_id: bytes | None) -> Composition:
        """Put an engine together from what was checked. Attempts get the context variables that hold here.

        Args:
            loop: where async handlers run, and what async providers give lives.
            bus: hears what happens.
            worker_id: who the worker is, where that was known before.
        """
        rw = self._rw
        usage = rw.worker_options.record_resource_usage
        invoker = Invoker(rw.catalog, clock=rw.clock, record_usage=usage, alone=False, loop=loop)
        pools = [
            ServedPool.of(
                pool,
                ThreadBackend(
                    invoker,
                    pool.name,
                    concurrency=pool.concurrency,
                    clock=rw.clock,
                    loop=loop,
                    cancellation_grace_s=rw.worker_options.cancellation_grace.total_seconds(),
                    cleanup_budget_s=rw.worker_options.cleanup_budget.total_seconds(),
                ),
            )
            for pool in self.pools
        ]
        worker = Worker(
            rw.store,
            pools,
            application=rw.application,
            kinds=frozenset(rw.catalog.decodable),
            limits=rw.catalog.limits,
            options=rw.worker_options,
            clock=rw.clock,
            dice=rw.dice,
            ids=rw.ids,
            bus=bus,
            worker_id=worker_id,
        )
        return Composition(worker, invoker)

    def _served(self) -> tuple[list[Pool], list[Problem]]:
        catalog = self._rw.catalog
        declared = catalog.pools if self._wanted is None else self._wanted
        return served_pools(declared, catalog.queues, self._queues)

    def _pool_problems(self) -> list[Problem]:
        try:
            catalog = self._rw.catalog
        except ConfigurationError:
            return []  # told already; without the queues nothing can be said of the pools
        problems = check_pools(self._wanted or (), catalog.queues, sys.maxsize)
        if not problems:
            pools, problems = self._served()
            problems += check_pools(pools, catalog.queues, self._rw.worker_options.outstanding_max())
        problems += catalog.unknown_aliases
        if not catalog.handlers:
            problems.append(
                Problem("missing_handler", self._rw.application, "registers no handler, so there is nothing to run.")
            )
        return problems
