"""The life of the parent: boot the zygote, check everything, run one worker on its executors, stop in order.

    signals are heard ─▶ run file locked ─▶ zygote boots ─▶ plan ─┬─ refused, or only checked ─▶ end
                                                                  └─ worker ─▶ drained ─▶ zygotes end ─▶ end
                                                                       ▲ HUP: the application is loaded anew

Signal handlers only tell the worker; everything else happens on the one event loop.
"""

import asyncio
import gc
import logging
import time
from collections.abc import Sequence
from typing import Final

import click
from setproctitle import setproctitle

from runwick.cli.progress import Progress
from runwick.cli.reporter import JsonReporter, Opening, Reporter, report_worker_events
from runwick.cli.worker_options import FAILED, STOPPED
from runwick.contracts.errors import Problem, StoreHistoryBroken
from runwick.contracts.identity import id_text
from runwick.health.status_file import StatusFile, open_status_file
from runwick.runtime.ambient import SystemClock, SystemDice, SystemIds
from runwick.runtime.runfile import RunFile, follow, open_run_file
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.telemetry.logs import log_events
from runwick.worker.engine import Worker, nothing_left
from runwick_supervisor.advising import advise
from runwick_supervisor.events import EventKind, ExecutorEvent
from runwick_supervisor.family import Family
from runwick_supervisor.hearing import Hearing
from runwick_supervisor.link import Grade
from runwick_supervisor.planning import Orders, Plan, make_plan
from runwick_supervisor.reload import Reload
from runwick_supervisor.staff import Staff
from runwick_supervisor.zygote_handle import Zygote

_GRADES: Final[dict[Grade, str]] = {
    "full": "full (deadline timer compiled in)",
    "watched": "watched (by the zygote; no deadline timer)",
}


async def supervise(orders: Orders, problems: Sequence[Problem], reporter: Reporter) -> int:
    """Run a worker until it is stopped, or until nothing is left; answers the exit status.

    Raises:
        ConfigurationError: with everything that is wrong; nothing was started and nothing is left.
        StoreError: the store does not let the worker in, as while its application is drained; nothing is left.
    """
    hearing = Hearing()
    supervision = Supervision(orders, reporter, hearing)
    try:
        return await supervision.run(problems)
    except asyncio.CancelledError:
        if hearing.was_left:
            return STOPPED
        raise
    finally:
        await supervision.end()


class Supervision:
    """One worker and what it takes to run it; to be made on the event loop."""

    def __init__(self, orders: Orders, reporter: Reporter, hearing: Hearing) -> None:
        self._started_s = time.monotonic()
        self._orders = orders
        self._reporter = reporter
        self._hearing = hearing
        self._clock = SystemClock()
        self._worker_id = SystemIds().ordered()
        self._run_file: RunFile | None = None
        self._status_file: StatusFile | None = None
        self._notes: list[str] = []
        if not orders.starts_nothing:
            # Before the first zygote is executed: every process of the worker holds its lock.
            self._run_file, note = open_run_file(orders.run_dir, self._worker_id)
            self._status_file, status_note = open_status_file(
                orders.run_dir, self._worker_id, "runwick-supervise", self._clock
            )
            self._notes += filter(None, (note, status_note))
        lock = None if self._run_file is None else self._run_file.descriptor
        self._family = Family(lock, buries_strangers=True)
        self._staff = Staff(self._clock, self._tell)

    async def run(self, problems: Sequence[Problem]) -> int:
        """See `supervise`."""
        zygote = self._zygote()
        plan = await make_plan(self._orders, problems, zygote, self._clock)
        setproctitle(f"runwick-supervise {plan.manifest.application}")
        about = self._opening(plan)
        self._reporter.opened(about)
        try:
            if self._orders.check_only:
                self._reporter.happened("checked", "nothing is wrong, and nothing was started", {})
                return STOPPED
            if self._orders.advise:
                await self._advise(plan)
                return STOPPED
            return await self._work(plan, zygote, about)
        finally:
            plan.store.close()

    async def end(self) -> None:
        """Whatever happened, nothing is left but what the next start must know."""
        self._hearing.end()
        await self._family.stop()
        for file in (self._run_file, self._status_file):
            if file is not None:
                file.close()

    async def _advise(self, plan: Plan) -> None:
        advice = await advise(self._orders, plan)
        if isinstance(self._reporter, JsonReporter):
            self._reporter.happened("advice", advice.tuning.limiting.text, advice.facts)
        else:
            click.echo(advice.text)

    def _zygote(self) -> Zygote:
        orders = self._orders
        return Zygote(self._tell, self._family, numeric_threads=orders.numeric_threads, preload=orders.preload)

    def _opening(self, plan: Plan) -> Opening:
        manifest = plan.manifest
        counted = manifest.grade == "full" and manifest.executors.record_allocations
        accounting = "cpu, memory, allocations, faults and switches" if counted else "cpu, memory, faults and switches"
        return Opening(
            program="runwick-supervise",
            target=self._orders.target,
            app_dir=self._orders.app_dir,
            application=manifest.application,
            store=plan.store.description,
            size={"cores": self._orders.cores, "executors": plan.executors},
            pools={pool.name: pool.concurrency for pool in plan.pools},
            accounting=accounting if manifest.worker.record_resource_usage else None,
            notes=[*manifest.warnings, *plan.store.notes, *self._notes],
            force="asks runs to stop, a third time kills them",
            grade=_GRADES[manifest.grade],
        )

    async def _work(self, plan: Plan, zygote: Zygote, about: Opening) -> int:
        bus = Bus()
        if logging.getLogger("runwick").hasHandlers():  # otherwise the reporter's lines would come twice
            log_events(bus)
        report_worker_events(bus, self._reporter)
        worker = self._worker(plan, zygote, bus)
        if self._run_file is not None:
            follow(self._run_file, bus, plan.manifest.application, lambda: plan.store.store_id, worker.inherit)
        if self._status_file is not None:
            self._status_file.follow(bus, plan.manifest.application)
        reload = Reload(self._orders, plan, zygote, self._staff, worker, self._reporter, self._zygote)
        _calm_collector()
        self._hearing.begin(worker)
        interval_s = self._orders.progress_interval_s
        progress = Progress(
            self._reporter,
            worker,
            worker.outlook,
            runs=worker.count_runs,
            cores=self._orders.cores,
            interval_s=interval_s,
        )
        bus.listen(events.WorkerReady, lambda _: progress.begin(about, time.monotonic() - self._started_s))
        bus.listen(events.WorkerReady, lambda _: self._hearing.ready(worker.show_stacks, reload.ask))
        left = None
        try:
            left = await worker.run(until=nothing_left if self._orders.until_empty else None)
        except StoreHistoryBroken:
            if not progress.has_begun:  # the store let nobody in; otherwise the worker's `failure` says it
                raise
        finally:
            progress.end()
            await reload.end()
        progress.summary(left)
        if worker.failure is not None:
            self._reporter.happened("failed", worker.failure, {})
            return FAILED
        return FAILED if self._orders.until_empty and worker.tally.failed else STOPPED

    def _worker(self, plan: Plan, zygote: Zygote, bus: Bus) -> Worker:
        engagement = self._staff.propose(plan, zygote)
        self._staff.accept(engagement, set())
        return Worker(
            plan.store,
            engagement.served,
            application=plan.manifest.application,
            kinds=frozenset(plan.manifest.kinds),
            limits=plan.manifest.limits,
            options=plan.manifest.worker,
            clock=self._clock,
            dice=SystemDice(),
            ids=SystemIds(),
            bus=bus,
            worker_id=self._worker_id,
            grade=plan.manifest.grade,
        )

    def _tell(self, event: ExecutorEvent, pool: str = "") -> None:
        of_pool = f' of pool "{pool}"' if self._staff.pools > 1 else ""
        text = event.text if event.executor is None else f"executor {event.executor}{of_pool} {event.text}"
        facts: dict[str, object] = {"pool": pool} if pool else {}
        facts |= {"executor": event.executor, "pid": event.pid, "milliseconds": event.milliseconds}
        if event.attempt is not None and event.kind in (EventKind.EXECUTOR_DIED, EventKind.EXECUTOR_STOPPED):
            attempt = event.attempt
            job = id_text(attempt.job_id)
            execution = f"execution {attempt.execution} of {attempt.policy.max_executions}"
            text += f", running {attempt.kind.name} {job} ({execution})"
            facts["job_id"] = job
        self._reporter.happened(event.kind.value, text, facts)


def _calm_collector() -> None:
    """Nothing here makes cycles job by job: look for them rarely, and never among what was loaded at start."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
