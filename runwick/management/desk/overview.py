"""The desk's part for figures: the overview, and what each job type costs.

Figures rest on the runs that ended last and that the caller may see; none is kept between two questions.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import msgspec

from runwick.contracts.activity import ExecutorActivity, WorkerRecord
from runwick.contracts.administration import Standing
from runwick.contracts.errors import JobNotFound
from runwick.contracts.limits import QueueRecord
from runwick.contracts.listing import COUNTED_MAX, RUNS_MAX, Backlog, JobFilter, JobSummary, RunRecord, Within
from runwick.contracts.states import LEASED_STATES
from runwick.management.bodies import OverviewBody, TypeDetailBody, TypeListBody
from runwick.management.commands import is_storable
from runwick.management.desk.advice import advice_on
from runwick.management.desk.figures import has_failed, point_body, type_body
from runwick.management.desk.ground import Ground
from runwick.management.desk.limiting import Flow, limiting
from runwick.management.desk.machine import Machine
from runwick.management.desk.shown import maybe_time, time_text
from runwick.management.desk.trends import cores_used, trend_of, window_of
from runwick.management.desk.troubles import QueueSight, Sight, troubles_of
from runwick.management.desk.workers import is_alive
from runwick.management.permissions import Caller, Permission

RECENT_FAILURES: Final = 10
LEASED_MAX: Final = 1_000
"""Running jobs are counted up to here."""
RUNS_ENOUGH: Final = 100
"""A type with fewer among the last runs of all types is read by itself, where those are not all."""
POINTS_MAX: Final = 500
"""Runs that a plot of one type gets."""


class Reading(NamedTuple):
    """What one overview rests on."""

    standing: Standing
    queues: Sequence[QueueRecord]
    backlogs: Sequence[Backlog]
    workers: Sequence[WorkerRecord]
    runs: Sequence[RunRecord]
    leased: Sequence[JobSummary]


class FigureDesk(Ground):
    """What an operator sees of the whole."""

    async def overview(self, caller: Caller) -> OverviewBody:
        """What is wrong now, then how much waits, runs and ended; needs `Jobs.Read`. Runs and running jobs are those
        within reach. How far behind a queue is, is told to whom `Queues.Read` shows the queue, or `Jobs.Read` all of
        its jobs; how many workers and executors there are, to whom `Capacity.Read` shows them.

        Raises:
            Forbidden: the caller may not.
        """
        caller.allowed.need(Permission.JOBS_READ)
        reading = await self._reading(caller)
        now_ms = self._store.now_ms()
        backlogs = [each for each in reading.backlogs if _may_count(caller, each.queue)]
        alive = [worker for worker in reading.workers if is_alive(worker, now_ms)]
        executors = [executor for worker in alive for executor in worker.executors]
        failed = [run for run in reading.runs if has_failed(run)]
        begun = sum(job.begun_at_ms is not None for job in reading.leased)
        window = window_of(reading.runs, now_ms)
        # What others' jobs use now is not told; what they used is not among the runs either.
        mine = {job.job_id for job in reading.leased}
        cores = cores_used(reading.runs, [each for each in executors if each.job_id in mine], now_ms)
        shows_workers = caller.allowed.has(Permission.CAPACITY_READ)
        places = sum(worker.presence.executors for worker in alive) if shows_workers else None
        return OverviewBody(
            troubles=troubles_of(_sight(caller, reading, backlogs, alive, now_ms)),
            due=sum(each.due for each in backlogs),
            due_is_capped=any(each.due >= COUNTED_MAX for each in backlogs),
            later=sum(each.later for each in backlogs),
            blocked=sum(each.blocked for each in backlogs),
            running=begun,
            handed_over=len(reading.leased) - begun,
            oldest_due_at=maybe_time(min(filter(None, (each.oldest_due_at_ms for each in backlogs)), default=None)),
            ended=trend_of(reading.runs, window),
            failed=trend_of(failed, window),
            cores=None if cores is None else round(cores.mean, 3),
            cores_over_ms=None if cores is None else cores.over_ms,
            cores_share=None if cores is None or not places else round(min(1.0, cores.mean / places), 4),
            workers=len(alive) if shows_workers else None,
            executors=places,
            executors_busy=sum(map(_is_busy, executors)) if shows_workers else None,
            recent_failures=tuple(map(point_body, failed[:RECENT_FAILURES])),
            admission=reading.standing.admission.value,
            as_of=time_text(now_ms),
        )

    async def types(self, caller: Caller) -> TypeListBody:
        """Every job type that has jobs within reach, by name, with figures of its last runs; needs `Jobs.Read`. For
        whoever may see all jobs, the declared ones that never had any are there too.

        Raises:
            Forbidden: the caller may not.
        """
        caller.allowed.need(Permission.JOBS_READ)
        within, as_of = caller.allowed.within(Permission.JOBS_READ), time_text(self._store.now_ms())
        last = await self._ask(self._store.runs(self.application, None, within, RUNS_MAX))
        runs: dict[str, list[RunRecord]] = {}
        for run in last:
            runs.setdefault(run.kind.name, []).append(run)
        shown = []
        for name in sorted({*await self._ask(self._store.names(self.application)), *self._declared()}):
            found = runs.get(name, [])
            if len(found) < RUNS_ENOUGH and len(last) >= RUNS_MAX:
                found = await self._runs_of(name, within)
            if found or await self._is_seen(name, within):
                shown.append(type_body(name, found))
        return TypeListBody(types=tuple(shown), as_of=as_of)

    async def type(self, caller: Caller, name: str) -> TypeDetailBody:
        """One job type: figures, the runs for plots, and advice; needs `Jobs.Read`.

        Raises:
            Forbidden: the caller may not.
            JobNotFound: no job of such a type is within reach.
        """
        caller.allowed.need(Permission.JOBS_READ)
        within, as_of = caller.allowed.within(Permission.JOBS_READ), time_text(self._store.now_ms())
        found = await self._runs_of(name, within) if is_storable(name) else []
        if not found and not (is_storable(name) and await self._is_seen(name, within)):
            raise JobNotFound("not_found", f"no job type {name!r} in this application")
        limit_ms = None if self._side is None else self._side.time_limit_ms(name)
        return TypeDetailBody(
            **msgspec.structs.asdict(type_body(name, found)),
            points=tuple(map(point_body, found[:POINTS_MAX])),
            advice=advice_on(found, Machine.here(), limit_ms, is_limit_known=self._side is not None),
            limiting=limiting(await self._flow(caller)) if _sees_all(caller) else None,
            as_of=as_of,
        )

    async def _flow(self, caller: Caller) -> Flow:
        """The application at work; for a caller who may see all of it."""
        reading, now_ms = await self._reading(caller), self._store.now_ms()
        alive = [worker for worker in reading.workers if is_alive(worker, now_ms)]
        sight = _sight(caller, reading, reading.backlogs, alive, now_ms)
        return Flow(now_ms, sight.admission, sight.queues, alive, reading.runs, Machine.here())

    async def _reading(self, caller: Caller) -> Reading:
        store, within = self._store, caller.allowed.within(Permission.JOBS_READ)
        leased = store.jobs(self.application, JobFilter(states=LEASED_STATES), within, None, LEASED_MAX)
        standing, queues, backlogs, workers, runs, page = await asyncio.gather(
            self._ask(store.standing(self.application)),
            self._ask(store.queues(self.application)),
            self._ask(store.backlogs(self.application)),
            self._ask(store.workers(self.application)),
            self._ask(store.runs(self.application, None, within, RUNS_MAX)),
            self._ask(leased),
        )
        return Reading(standing, queues, backlogs, workers, runs, page.jobs)

    async def _runs_of(self, name: str, within: Within) -> list[RunRecord]:
        return await self._ask(self._store.runs(self.application, name, within, RUNS_MAX))

    def _declared(self) -> Collection[str]:
        return () if self._side is None else self._side.declared_names()

    async def _is_seen(self, name: str, within: Within) -> bool:
        """Whether some job of that type is within reach, of which the latest are looked at as far as a page goes; or
        the type is declared, and all jobs are."""
        if within is None and name in self._declared():
            return True
        page = await self._ask(self._store.jobs(self.application, JobFilter(name=name), within, None, 1))
        return bool(page.jobs)


def _sight(
    caller: Caller, reading: Reading, backlogs: Sequence[Backlog], alive: Sequence[WorkerRecord], now_ms: int
) -> Sight:
    """What rules about troubles may look at."""
    paused = {record.queue for record in reading.queues if record.paused}
    served = {queue for worker in alive for queue in worker.presence.queues}
    return Sight(
        now_ms=now_ms,
        admission=reading.standing.admission,
        queues=[QueueSight(each, each.queue in paused, each.queue in served) for each in backlogs],
        workers=reading.workers if caller.allowed.has(Permission.CAPACITY_READ) else (),
        runs=reading.runs,
    )


def _sees_all(caller: Caller) -> bool:
    """Whether figures of the whole application may be told: over all jobs, queues and workers."""
    sees_jobs = caller.allowed.within(Permission.JOBS_READ) is None
    return sees_jobs and caller.allowed.has(Permission.CAPACITY_READ)


def _may_count(caller: Caller, queue: str) -> bool:
    """Whether the figures of a queue, which are over all tenants, may be told."""
    seen = caller.allowed.covers_queue(Permission.QUEUES_READ, queue)
    return seen or caller.allowed.covers_whole(Permission.JOBS_READ, queue)


def _is_busy(executor: ExecutorActivity) -> bool:
    return executor.attempt_id is not None
