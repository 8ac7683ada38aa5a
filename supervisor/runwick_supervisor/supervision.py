"""The life of the parent: boot the zygote, check everything, run one worker on its executors, stop in order.

Signal handlers only tell the worker to stop; everything else happens on the one event loop.
"""

import asyncio
import gc
import logging
import signal
import time
from collections.abc import Sequence
from typing import Final

import msgspec
from setproctitle import setproctitle

from runwick.app.stores import open_store
from runwick.config.check import check_pools
from runwick.config.options import StoreOptions
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Lane
from runwick.contracts.errors import ConfigurationError, Problem, RunwickError, StoreError
from runwick.contracts.identity import id_text
from runwick.contracts.stores import Outlook, Store
from runwick.declarations.pools import DEFAULT_POOL, Pool
from runwick.policy.lanes import lanes_of
from runwick.runtime.ambient import SystemClock, SystemDice, SystemIds
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.telemetry.logs import log_events
from runwick.worker.engine import Worker, nothing_left
from runwick_supervisor.backend import ExecutorBackend
from runwick_supervisor.events import EventKind, ExecutorEvent
from runwick_supervisor.link import Manifest
from runwick_supervisor.reporter import Reporter, report_worker_events
from runwick_supervisor.zygote_handle import ApplicationRefused, Zygote

STOPPED: Final = 0
JOBS_FAILED: Final = 1
"""With ``--until-empty``: a job of this run ended failed. Otherwise: the executors could not be kept up."""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    target: str
    app_dir: str
    executors: int
    cores: int
    queues: tuple[str, ...] | None
    check_only: bool
    until_empty: bool
    progress_interval_s: float


class Plan(msgspec.Struct, frozen=True):
    """Everything checked, ready to run."""

    manifest: Manifest
    store: Store
    pool: Pool
    lanes: list[Lane]


async def supervise(orders: Orders, problems: Sequence[Problem], reporter: Reporter) -> int:
    """Run a worker until it is stopped, or until nothing is left; answers the exit status.

    Raises:
        ConfigurationError: with everything that is wrong; nothing was started and nothing is left.
    """
    started_s = time.monotonic()
    clock = SystemClock()
    zygote = Zygote(on_event=lambda event: _tell(event, reporter))
    try:
        plan = await _plan(orders, list(problems), zygote, clock)
        manifest = plan.manifest
        setproctitle(f"runwick-supervise {manifest.application}")
        reporter.opened(
            application=manifest.application,
            store=plan.store.description,
            cores=orders.cores,
            executors=orders.executors,
            accounting=manifest.worker.record_resource_usage,
            notes=[*manifest.warnings, *plan.store.notes],
        )
        try:
            if orders.check_only:
                reporter.happened("checked", "nothing is wrong, and nothing was started", {})
                return STOPPED
            return await _work(orders, plan, zygote, clock, reporter, started_s)
        finally:
            plan.store.close()
    finally:
        await zygote.stop()


async def _plan(orders: Orders, problems: list[Problem], zygote: Zygote, clock: Clock) -> Plan:
    """Ask everybody what is wrong, then refuse with all of it.

    The zygote has the same environment: its options are those of the code with what the environment says instead,
    checked already.
    """
    try:
        manifest = await zygote.boot(orders.target, orders.app_dir)
    except ApplicationRefused as refused:
        problems += refused.problems
        if refused.store is not None and (store := _open(refused.store, StoreOptions(), problems, clock)):
            store.close()
        raise ConfigurationError(list(dict.fromkeys(problems))) from None
    except ConfigurationError as refused:
        raise ConfigurationError([*problems, *refused.problems]) from None
    problems += manifest.problems
    pool = _pool(orders, manifest, problems)
    if not manifest.kinds:
        problems.append(Problem("missing_handler", orders.target, "registers no handler, so there is nothing to run."))
    store = None
    if manifest.store is not None:
        # Options out of bounds must not hide what is wrong with the store itself.
        options = StoreOptions() if manifest.problems else manifest.stores
        store = _open(manifest.store, options, problems, clock)
    if problems or store is None:
        if store is not None:
            store.close()
        raise ConfigurationError(list(dict.fromkeys(problems)))
    return Plan(manifest, store, pool, lanes_of(pool.queues or manifest.queues))


def _pool(orders: Orders, manifest: Manifest, problems: list[Problem]) -> Pool:
    """The one pool, with the number of executors and the queues that were asked for."""
    declared = manifest.pools[0] if manifest.pools else DEFAULT_POOL
    pool = Pool(declared.name, declared.queues, orders.executors)
    problems += check_pools([pool], manifest.queues, manifest.worker.outstanding_max(orders.executors))
    if orders.queues is None:
        return pool
    served = pool.queues or manifest.queues
    listed = ", ".join(served)
    if not orders.queues:
        problems.append(Problem("invalid_pool", "--queues", f"names no queue; the pool serves: {listed}."))
    for queue in orders.queues:
        if queue not in served:
            problems.append(
                Problem("invalid_pool", "--queues", f'names "{queue}", which the pool does not serve: {listed}.')
            )
    return Pool(pool.name, orders.queues, orders.executors)


def _open(url: str, options: StoreOptions, problems: list[Problem], clock: Clock) -> Store | None:
    """The store, opened and checked; what is wrong with it joins the problems."""
    store = None
    try:
        store = open_store(url, options, clock, SystemIds())
        store.check()
    except ConfigurationError as refused:
        problems += refused.problems
    except StoreError as error:
        problems.append(Problem(error.code, "store", f"{error.message}."))
    return store


async def _work(orders: Orders, plan: Plan, zygote: Zygote, clock: Clock, reporter: Reporter, started_s: float) -> int:
    manifest = plan.manifest
    bus = Bus()
    if logging.getLogger("runwick").hasHandlers():  # otherwise the reporter's lines would come twice
        log_events(bus)
    report_worker_events(bus, reporter)
    backend = ExecutorBackend(
        zygote,
        plan.pool.name,
        orders.executors,
        clock,
        manifest.worker.record_resource_usage,
        on_event=lambda event: _tell(event, reporter),
    )
    worker = Worker(
        plan.store,
        backend,
        application=manifest.application,
        lanes=plan.lanes,
        kinds=frozenset(manifest.kinds),
        options=manifest.worker,
        clock=clock,
        dice=SystemDice(),
        ids=SystemIds(),
        bus=bus,
        executors=orders.executors,
    )
    _calm_collector()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop_more_urgently)
    progress = Progress(worker, plan, orders, reporter)
    bus.listen(events.WorkerReady, lambda _: progress.begin(time.monotonic() - started_s))
    try:
        left = await worker.run(until=nothing_left if orders.until_empty else None)
    finally:
        progress.end()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    progress.summary(left)
    if worker.failure is not None:
        reporter.happened("failed", f"the executors could not be kept up: {worker.failure}", {})
        return JOBS_FAILED
    return JOBS_FAILED if orders.until_empty and worker.tally.failed else STOPPED


def _calm_collector() -> None:
    """Nothing here makes cycles job by job: look for them rarely, and never among what was loaded at start."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


class Progress:
    """The quiet line: what was done since the start, and the share of the cores inside handlers since the last line."""

    def __init__(self, worker: Worker, plan: Plan, orders: Orders, reporter: Reporter) -> None:
        self._worker = worker
        self._plan = plan
        self._orders = orders
        self._reporter = reporter
        self._begun_s = self._last_s = time.monotonic()
        self._last_cpu_us = 0
        self._task: asyncio.Task[None] | None = None

    def begin(self, seconds: float) -> None:
        self._begun_s = self._last_s = time.monotonic()
        self._reporter.ready(executors=self._orders.executors, seconds=seconds)
        self._task = asyncio.create_task(self._lines(), name="progress")

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def summary(self, left: Outlook | None) -> None:
        tally = self._worker.tally
        # A run that waited idle for its end did its work until the last settlement.
        elapsed_s = max((tally.last_settled_s or self._begun_s) - self._begun_s, 1e-9)
        share = tally.handler_cpu_us / 1e6 / (elapsed_s * self._orders.cores)
        self._reporter.summary(tally, share, left, elapsed_s)

    async def _lines(self) -> None:
        while True:
            await asyncio.sleep(self._orders.progress_interval_s)
            outlook = await self._outlook()
            tally, now_s = self._worker.tally, time.monotonic()
            used_s = (tally.handler_cpu_us - self._last_cpu_us) / 1e6
            share = used_s / ((now_s - self._last_s) * self._orders.cores)
            self._last_s, self._last_cpu_us = now_s, tally.handler_cpu_us
            self._reporter.progress(tally, share, outlook, self._worker.running, now_s - self._begun_s)

    async def _outlook(self) -> Outlook | None:
        """What waits; a store that gives no answer is the worker's to report, not this line's."""
        store, manifest = self._plan.store, self._plan.manifest
        kinds = frozenset(manifest.kinds)
        try:
            return await store.run_async(store.outlook(manifest.application, self._plan.lanes, kinds))
        except RunwickError:
            return None


def _tell(event: ExecutorEvent, reporter: Reporter) -> None:
    text = event.text if event.executor is None else f"executor {event.executor} {event.text}"
    facts: dict[str, object] = {"executor": event.executor, "pid": event.pid, "milliseconds": event.milliseconds}
    if event.attempt is not None and event.kind is EventKind.EXECUTOR_DIED:
        attempt = event.attempt
        job = id_text(attempt.job_id)
        text += f" running {attempt.kind.name} {job} (execution {attempt.execution} of {attempt.policy.max_executions})"
        facts["job_id"] = job
    reporter.happened(event.kind.value, text, facts)
