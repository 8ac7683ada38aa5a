"""The desk's part for jobs: lists, one job with its history, why it waits, controls, and what happened.

A job that the caller may not see does not exist for him: lists leave it out before they are paged, and every answer
about it is the one for an id that nobody ever gave.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.controls import ControlAction, JobTarget
from runwick.contracts.history import JobEvent
from runwick.contracts.identity import id_bytes, id_text
from runwick.contracts.listing import JobFilter
from runwick.management.bodies import ControlBody, EventBody, EventListBody, JobDetailBody, JobListBody, WaitBody
from runwick.management.commands import command_of
from runwick.management.desk.ground import PAGE_MAX, Ground, check_limit, no_job
from runwick.management.desk.shown import (
    control_bodies,
    event_body,
    job_body,
    job_detail_body,
    running_body,
    time_text,
    wait_body,
)
from runwick.management.desk.workers import is_alive
from runwick.management.permissions import CONTROLS, Caller, Permission
from runwick.management.service import CommandId

EVENT_PAGES_MAX: Final = 10
"""So many pages are read to fill one with events within reach."""


class JobDesk(Ground):
    """What an operator sees of jobs, and does to them."""

    async def jobs(self, caller: Caller, chosen: JobFilter, cursor: str | None = None, limit: int = 50) -> JobListBody:
        """The jobs of a filter, the latest first; needs `Jobs.Read`.

        Args:
            caller: who asks.
            chosen: which jobs.
            cursor: where the page before ended; None reads from the latest.
            limit: 1 to 100.

        Raises:
            Forbidden: the caller may not.
            InvalidArgument: that is no cursor of such a filter, or no such limit (code ``invalid_argument``).
        """
        caller.allowed.need(Permission.JOBS_READ)
        within = caller.allowed.within(Permission.JOBS_READ)
        as_of = time_text(self._store.now_ms())
        page = await self._ask(self._store.jobs(self.application, chosen, within, cursor, check_limit(limit)))
        return JobListBody(jobs=tuple(map(job_body, page.jobs)), cursor=page.cursor, as_of=as_of)

    async def job(self, caller: Caller, job_id: str) -> JobDetailBody:
        """One job with its history and what runs of it now; needs `Jobs.Read`. On which host and in which process is
        told to whom `Capacity.Read` shows workers.

        Raises:
            Forbidden: the caller may not.
            JobNotFound: there is no such job for him.
            InvalidArgument: that is no id (code ``invalid_id``).
        """
        caller.allowed.need(Permission.JOBS_READ)
        record = await self._job(caller, Permission.JOBS_READ, id_bytes(job_id))
        workers = [] if record.worker is None else await self._ask(self._store.workers(self.application))
        holder = next((each for each in workers if each.presence.worker == record.worker), None)
        alive = None if holder is None else is_alive(holder, self._store.now_ms())
        shows_place = caller.allowed.has(Permission.CAPACITY_READ)
        return job_detail_body(record, running_body(record, holder, worker_alive=alive, shows_place=shows_place))

    async def why(self, caller: Caller, job_id: str) -> WaitBody:
        """Every reason for which a job waits; needs `Jobs.Read` and raises as `job`."""
        caller.allowed.need(Permission.JOBS_READ)
        record = await self._job(caller, Permission.JOBS_READ, id_bytes(job_id))
        report = await self._ask(self._store.why(self.application, record.job_id))
        if report is None:
            raise no_job(record.job_id)
        return wait_body(report)

    async def control(
        self,
        caller: Caller,
        action: ControlAction,
        targets: Sequence[JobTarget],
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> list[ControlBody]:
        """Cancel, retry, rerun or look at up to 100 jobs in one transaction; needs what `CONTROLS` says, for each job.

        Args:
            caller: who does this.
            action: what is done.
            targets: the jobs as last seen; one that has changed since is left alone.
            reason: why, for the audit trail.
            command_id: a UUID of the caller's; sent again with the same one, the first answers are given again.

        Returns:
            One answer per target, in order. What is hidden or missing answers ``not_found``.

        Raises:
            Forbidden: the caller may not do this to any job.
            InvalidArgument: something in it cannot be; nothing was sent.
            StoreError: nothing was written.
            ControlOutcomeUnknown: it may or may not have been applied; the same command id settles it.
        """
        caller.allowed.need(CONTROLS[action])
        given = self._command_id(command_id)
        command = command_of(action, self.application, targets, caller.actor, reason, given)
        within_reach = await self._within_reach(caller, CONTROLS[action], targets)
        answers: dict[bytes, ControlBody] = {}
        if within_reach:
            command = msgspec.structs.replace(command, targets=within_reach)
            answers = control_bodies(await self._send(self._store.control(command), given), given)
        return [answers.get(target.job_id) or _not_found(target.job_id, given) for target in targets]

    async def events(self, caller: Caller, after: str | None = None, limit: int = 100) -> EventListBody:
        """What happened to jobs, in the order in which it was committed; needs `Jobs.Read`.

        Args:
            caller: who asks.
            after: a cursor; None reads from the beginning.
            limit: 1 to 100. A page may be short, even empty, although there is more.

        Raises:
            Forbidden: the caller may not.
            InvalidArgument: that is no cursor, or no such limit (code ``invalid_argument``).
        """
        caller.allowed.need(Permission.JOBS_READ)
        most, known, shown = check_limit(limit), dict[bytes, bool](), list[EventBody]()
        size = most if caller.allowed.within(Permission.JOBS_READ) is None else PAGE_MAX
        # On to the next page where some are hidden, so that a short page does not count what others do.
        for _ in range(EVENT_PAGES_MAX):
            page = await self._ask(self._store.events(self.application, after, size))
            for event in page.events:
                if len(shown) == most:
                    return EventListBody(events=tuple(shown), cursor=shown[-1].cursor, more=True)
                if await self._may_see(caller, event, known):
                    shown.append(event_body(event))
            after = page.cursor
            if len(shown) == most or not page.more:
                break
        return EventListBody(events=tuple(shown), cursor=page.cursor, more=page.more)

    async def _within_reach(
        self, caller: Caller, permission: Permission, targets: Sequence[JobTarget]
    ) -> tuple[JobTarget, ...]:
        """The targets that exist for the caller. For one who has the permission everywhere the store says it itself."""
        if caller.allowed.within(permission) is None:
            return tuple(targets)
        records = [await self._ask(self._store.job(self.application, target.job_id)) for target in targets]
        return tuple(
            target
            for target, record in zip(targets, records, strict=True)
            if record is not None and caller.allowed.covers(permission, record.lane.queue, record.tenant)
        )

    async def _may_see(self, caller: Caller, event: JobEvent, known: dict[bytes, bool]) -> bool:
        """Whether the event's job is within reach; its tenant, which an event does not tell, is read where it
        matters."""
        queue = event.lane.queue
        if caller.allowed.covers_whole(Permission.JOBS_READ, queue):
            return True
        if not caller.allowed.covers_queue(Permission.JOBS_READ, queue):
            return False
        if event.job_id not in known:
            record = await self._ask(self._store.job(self.application, event.job_id))
            tenant_is_seen = record is not None and caller.allowed.covers(Permission.JOBS_READ, queue, record.tenant)
            known[event.job_id] = tenant_is_seen
        return known[event.job_id]


def _not_found(job_id: bytes, command_id: bytes) -> ControlBody:
    return ControlBody(
        succeeded=False,
        code="not_found",
        job_id=id_text(job_id),
        state=None,
        generation=None,
        revision=None,
        cancel_requested=False,
        attempt_id=None,
        replayed=False,
        command_id=id_text(command_id),
    )
