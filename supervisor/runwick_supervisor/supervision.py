"""The life of the parent: boot the zygote, check everything, run one worker on its executors, stop in order.

Signal handlers only tell the worker to stop; everything else happens on the one event loop.
"""

import asyncio
import functools
import gc
import logging
import signal
import time
from collections.abc import Sequence

from setproctitle import setproctitle

from runwick.cli.progress import Progress
from runwick.cli.reporter import Opening, Reporter, report_worker_events
from runwick.cli.worker_options import FAILED, STOPPED
from runwick.contracts.ambient import Clock
from runwick.contracts.errors import Problem
from runwick.contracts.identity import id_text
from runwick.policy.lanes import lanes_of
from runwick.runtime.ambient import SystemClock, SystemDice, SystemIds
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.telemetry.logs import log_events
from runwick.worker.engine import Worker, nothing_left
from runwick.worker.pools import ServedPool
from runwick_supervisor.backend import ATTEMPTS_MAX, PAYLOADS_MAX_BYTES, ExecutorBackend
from runwick_supervisor.events import EventKind, ExecutorEvent
from runwick_supervisor.planning import Orders, Plan, make_plan
from runwick_supervisor.zygote_handle import Zygote


async def supervise(orders: Orders, problems: Sequence[Problem], reporter: Reporter) -> int:
    """Run a worker until it is stopped, or until nothing is left; answers the exit status.

    Raises:
        ConfigurationError: with everything that is wrong; nothing was started and nothing is left.
        StoreError: the store does not let the worker in, as while its application is drained; nothing is left.
    """
    started_s = time.monotonic()
    clock = SystemClock()
    zygote = Zygote(on_event=lambda event: _tell(event, reporter, "", {}))
    try:
        plan = await make_plan(orders, problems, zygote, clock)
        setproctitle(f"runwick-supervise {plan.manifest.application}")
        about = _opening(orders, plan)
        reporter.opened(about)
        try:
            if orders.check_only:
                reporter.happened("checked", "nothing is wrong, and nothing was started", {})
                return STOPPED
            return await _work(orders, plan, zygote, clock, reporter, about, started_s)
        finally:
            plan.store.close()
    finally:
        await zygote.stop()


def _opening(orders: Orders, plan: Plan) -> Opening:
    return Opening(
        program="runwick-supervise",
        application=plan.manifest.application,
        store=plan.store.description,
        size={"cores": orders.cores, "executors": plan.executors},
        pools={pool.name: pool.concurrency for pool in plan.pools},
        accounting="cpu, memory, faults and switches" if plan.manifest.worker.record_resource_usage else None,
        notes=[*plan.manifest.warnings, *plan.store.notes],
        force="kills",
    )


async def _work(
    orders: Orders, plan: Plan, zygote: Zygote, clock: Clock, reporter: Reporter, about: Opening, started_s: float
) -> int:
    manifest = plan.manifest
    bus = Bus()
    if logging.getLogger("runwick").hasHandlers():  # otherwise the reporter's lines would come twice
        log_events(bus)
    report_worker_events(bus, reporter)
    worker = Worker(
        plan.store,
        _staffed(plan, zygote, clock, reporter),
        application=manifest.application,
        kinds=frozenset(manifest.kinds),
        options=manifest.worker,
        clock=clock,
        dice=SystemDice(),
        ids=SystemIds(),
        bus=bus,
    )
    _calm_collector()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop_more_urgently)
    progress = Progress(reporter, worker, worker.outlook, cores=orders.cores, interval_s=orders.progress_interval_s)
    bus.listen(events.WorkerReady, lambda _: progress.begin(about, time.monotonic() - started_s))
    try:
        left = await worker.run(until=nothing_left if orders.until_empty else None)
    finally:
        progress.end()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    progress.summary(left)
    if worker.failure is not None:
        reporter.happened("failed", worker.failure, {})
        return FAILED
    return FAILED if orders.until_empty and worker.tally.failed else STOPPED


def _staffed(plan: Plan, zygote: Zygote, clock: Clock, reporter: Reporter) -> list[ServedPool]:
    """Each pool with executors of its own, numbered on; what may wait behind runs is shared out among them."""
    served = []
    first_executor = 1
    for pool in plan.pools:
        size = pool.concurrency
        of_pool = f' of pool "{pool.name}"' if len(plan.pools) > 1 else ""
        backend = ExecutorBackend(
            zygote,
            pool.name,
            size,
            clock,
            plan.manifest.worker.record_resource_usage,
            first_executor=first_executor,
            attempts_max=max(1, ATTEMPTS_MAX * size // plan.executors),
            payloads_max_bytes=PAYLOADS_MAX_BYTES * size // plan.executors,
            on_event=functools.partial(_tell, reporter=reporter, of_pool=of_pool, facts={"pool": pool.name}),
        )
        served.append(ServedPool(pool.name, backend, tuple(lanes_of(pool.queues or ())), size))
        first_executor += size
    return served


def _calm_collector() -> None:
    """Nothing here makes cycles job by job: look for them rarely, and never among what was loaded at start."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _tell(event: ExecutorEvent, reporter: Reporter, of_pool: str, facts: dict[str, object]) -> None:
    text = event.text if event.executor is None else f"executor {event.executor}{of_pool} {event.text}"
    facts = {**facts, "executor": event.executor, "pid": event.pid, "milliseconds": event.milliseconds}
    if event.attempt is not None and event.kind is EventKind.EXECUTOR_DIED:
        attempt = event.attempt
        job = id_text(attempt.job_id)
        text += f" running {attempt.kind.name} {job} (execution {attempt.execution} of {attempt.policy.max_executions})"
        facts["job_id"] = job
    reporter.happened(event.kind.value, text, facts)
