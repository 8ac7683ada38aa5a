"""The part of `Runwick` that looks at jobs and acts upon them: one job, why it waits, all that happened, who works, and
the controls of jobs, queues and capacities.

What waits for an answer of the store has a twin for event loops, under the same name with ``_async``.
"""

import datetime
import time
from collections.abc import Callable, Collection
from typing import Final

from runwick.app.history import Audit, AuditView, Events, EventView, WorkerView
from runwick.app.reasons import WaitView
from runwick.app.views import JobView
from runwick.app.waiting import pauses_s
from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.dispatching import Receipt
from runwick.contracts.errors import InvalidArgument, JobNotFound, WaitTimeout
from runwick.contracts.history import AuditPage, EventPage
from runwick.contracts.identity import id_bytes, id_text
from runwick.contracts.stores import JobRecord, Store
from runwick.contracts.waiting import WaitReport
from runwick.management.capacity import CapacityControls
from runwick.management.queues import QueueControls
from runwick.management.service import JobControls
from runwick.management.steering import Steering

PAGE_MAX: Final = 1_000
"""Events or records of one page."""


class Looking:
    """What an application sees of its jobs, and does to them.

    Args:
        application: whose jobs.
        opened: gives the store, opened at first use.
        ids: makes ids of commands.
        clock: limits how long something is waited for.
        queues: gives the queues that the application declares.
    """

    def __init__(
        self,
        application: str,
        opened: Callable[[], Store],
        ids: Ids,
        clock: Clock,
        queues: Callable[[], Collection[str]],
    ) -> None:
        self.controls = JobControls(application, opened, ids, clock)
        """Cancel, retry and rerun jobs, and look at running ones."""
        steering = Steering(application, opened, ids, clock)
        self.queues = QueueControls(steering, queues)
        """Pause and resume queues."""
        self.capacity = CapacityControls(steering)
        """See the limits across all workers, and change the capacity of scopes."""
        self.application = application
        self.ids = ids
        self.clock = clock
        self._opened_store = opened

    def get(self, job: Receipt | str) -> JobView:
        """Read a job as it stands now.

        Args:
            job: its receipt, or its id as UUID text.

        Raises:
            JobNotFound: this application has no such job.
            InvalidArgument: that is no id (code ``invalid_id``).
        """
        job_id = _job_id(job)
        store = self._opened_store()
        return _view(job_id, store.run(store.job(self.application, job_id)))

    async def get_async(self, job: Receipt | str) -> JobView:
        """`get` on an event loop."""
        job_id = _job_id(job)
        store = self._opened_store()
        return _view(job_id, await store.run_async(store.job(self.application, job_id)))

    def why(self, job: Receipt | str) -> WaitView:
        """Say why a job waits: every reason that holds now, each in a sentence.

        Args:
            job: its receipt, or its id as UUID text.

        Raises:
            JobNotFound: this application has no such job.
            InvalidArgument: that is no id (code ``invalid_id``).
        """
        job_id = _job_id(job)
        store = self._opened_store()
        return _waiting(job_id, store.run(store.why(self.application, job_id)))

    async def why_async(self, job: Receipt | str) -> WaitView:
        """`why` on an event loop."""
        job_id = _job_id(job)
        store = self._opened_store()
        return _waiting(job_id, await store.run_async(store.why(self.application, job_id)))

    def wait(self, job: Receipt | str, *, timeout: datetime.timedelta) -> JobView:
        """Wait until a job has ended: succeeded, failed or cancelled.

        Args:
            job: its receipt, or its id as UUID text.
            timeout: how long to wait at most; the job goes on whatever the answer.

        Raises:
            WaitTimeout: it had not ended by then (code ``wait_timeout``).
            InvalidArgument: that is no id, or no timedelta.
            JobNotFound: this application has no such job.
        """
        for pause_s in pauses_s(timeout, self.clock):
            if (view := self.get(job)).state.terminal:
                return view
            time.sleep(pause_s)
        return _ended(self.get(job), timeout)

    async def wait_async(self, job: Receipt | str, *, timeout: datetime.timedelta) -> JobView:
        """`wait` on an event loop."""
        import asyncio

        for pause_s in pauses_s(timeout, self.clock):
            if (view := await self.get_async(job)).state.terminal:
                return view
            await asyncio.sleep(pause_s)
        return _ended(await self.get_async(job), timeout)

    def events(self, *, after: str | None = None, limit: int = 100) -> Events:
        """What happened to the application's jobs, in the order in which it was committed.

        Reading again after the answer's cursor misses nothing and repeats nothing, however late a transaction commits.
        Read on while `Events.more`: where several applications share a store, a page may be short, even empty, although
        more follows.

        Args:
            after: a cursor; None reads from the beginning.
            limit: at most so many, 1 to 1,000.

        Raises:
            InvalidArgument: that is no cursor, or no such limit (code ``invalid_argument``).
            StoreError: the store refuses, or does not answer.
        """
        store = self._opened_store()
        return _events(store.run(store.events(self.application, _after(after), _limit(limit))))

    async def events_async(self, *, after: str | None = None, limit: int = 100) -> Events:
        """`events` on an event loop."""
        store = self._opened_store()
        return _events(await store.run_async(store.events(self.application, _after(after), _limit(limit))))

    def audit(self, *, after: str | None = None, limit: int = 100) -> Audit:
        """What operators did, read as `events` reads: on, while `Audit.more`."""
        store = self._opened_store()
        return _audit(store.run(store.audit(self.application, _after(after), _limit(limit))))

    async def audit_async(self, *, after: str | None = None, limit: int = 100) -> Audit:
        """`audit` on an event loop."""
        store = self._opened_store()
        return _audit(await store.run_async(store.audit(self.application, _after(after), _limit(limit))))

    def workers(self) -> list[WorkerView]:
        """The workers seen within 24 hours, and what their executors did when they last told."""
        store = self._opened_store()
        records = store.run(store.workers(self.application))
        return [WorkerView.of(record) for record in records]

    async def workers_async(self) -> list[WorkerView]:
        """`workers` on an event loop."""
        store = self._opened_store()
        records = await store.run_async(store.workers(self.application))
        return [WorkerView.of(record) for record in records]


def _after(after: object) -> str | None:
    if after is not None and not isinstance(after, str):
        given = f"after is {type(after).__name__}; give the cursor of a page or an event, or None for the beginning"
        raise InvalidArgument("invalid_argument", given)
    return after


def _limit(limit: int) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= PAGE_MAX:
        raise InvalidArgument("invalid_argument", f"limit is {limit!r}; give a whole number from 1 to {PAGE_MAX:,}")
    return limit


def _events(page: EventPage) -> Events:
    return Events(tuple(map(EventView.of, page.events)), page.cursor, page.more)


def _audit(page: AuditPage) -> Audit:
    return Audit(tuple(map(AuditView.of, page.records)), page.cursor, page.more)


def _job_id(job: Receipt | str) -> bytes:
    return job.job if isinstance(job, Receipt) else id_bytes(job)


def _view(job_id: bytes, record: JobRecord | None) -> JobView:
    if record is None:
        raise _not_found(job_id)
    return JobView(record)


def _waiting(job_id: bytes, report: WaitReport | None) -> WaitView:
    if report is None:
        raise _not_found(job_id)
    return WaitView.of(report)


def _not_found(job_id: bytes) -> JobNotFound:
    return JobNotFound("not_found", f"no job {id_text(job_id)} in this application")


def _ended(view: JobView, timeout: datetime.timedelta) -> JobView:
    if not view.state.terminal:
        waited = f"{timeout.total_seconds():g} s"
        raise WaitTimeout("wait_timeout", f"job {view.job_id} is still {view.state.value} after {waited}; it goes on")
    return view
