"""The desk's part for workers and their executors."""

from collections.abc import Sequence

from runwick.contracts.activity import WorkerRecord
from runwick.contracts.administration import WORKER_ALIVE_MS
from runwick.contracts.listing import JobFilter
from runwick.contracts.states import LEASED_STATES
from runwick.management.bodies import WorkerListBody
from runwick.management.desk.ground import PAGE_MAX, Ground
from runwick.management.desk.shown import time_text
from runwick.management.desk.shown_flow import executor_body, worker_body
from runwick.management.permissions import Caller, Permission


class WorkerDesk(Ground):
    """What an operator sees of workers."""

    async def workers(self, caller: Caller) -> WorkerListBody:
        """The workers seen within 24 hours, the latest start first, and what their executors did when they last told;
        needs `Capacity.Read`. Which job an executor runs is told where `Jobs.Read` covers that job.

        Raises:
            Forbidden: the caller may not.
        """
        caller.allowed.need(Permission.CAPACITY_READ)
        as_of_ms = self._store.now_ms()
        records = await self._ask(self._store.workers(self.application))
        seen = await self._seen(caller, records)
        shown = [
            worker_body(
                record,
                [
                    executor_body(each, shows_job=seen is None or each.job_id in seen)
                    for each in (record.executors if record.departed_at_ms is None else ())
                ],
                alive=is_alive(record, as_of_ms),
            )
            for record in records
        ]
        return WorkerListBody(workers=tuple(shown), as_of=time_text(as_of_ms))

    async def _seen(self, caller: Caller, workers: Sequence[WorkerRecord]) -> frozenset[bytes] | None:
        """Of the jobs under way, those that the caller may see; None for all."""
        within = caller.allowed.within(Permission.JOBS_READ)
        if within is None:
            return None
        busy = {each.job_id for record in workers for each in record.executors if each.job_id is not None}
        chosen, cursor, seen = JobFilter(states=LEASED_STATES), None, set[bytes]()
        while not busy <= seen:
            page = await self._ask(self._store.jobs(self.application, chosen, within, cursor, PAGE_MAX))
            seen |= {job.job_id for job in page.jobs}
            cursor = page.cursor
            if cursor is None:
                break
        return frozenset(seen)


def is_alive(worker: WorkerRecord, now_ms: int) -> bool:
    """Whether a worker has told within the time after which it counts as dead, and has not said good-bye."""
    return worker.departed_at_ms is None and worker.seen_at_ms > now_ms - WORKER_ALIVE_MS
