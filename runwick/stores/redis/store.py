"""The Redis store: every act of the store protocols on one durable primary, which processes of many hosts share.

The acts are the modules beside this one, under the same names; the driver runs them.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from runwick.config.options import RedisOptions
from runwick.contracts.activity import Beat, Report, StackAnswer, WorkerRecord
from runwick.contracts.administration import Standing
from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.attempts import Attempt, Begun, Claim, ClaimPlan, Held, Kind, Lane, WorkerPresence
from runwick.contracts.controls import ControlCommand, ControlReply, SteerCommand, SteerReply
from runwick.contracts.dispatching import Command, Receipt
from runwick.contracts.errors import ItemFailure
from runwick.contracts.history import AuditPage, EventPage
from runwick.contracts.limits import LimitKind, QueueRecord, RateRecord, ScopeNeed, ScopeRecord, Tended
from runwick.contracts.listing import AuditFilter, AuditList, Backlog, JobFilter, JobPage, RunRecord, Within
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.revealing import AuditNote, RevealCommand, Revealed
from runwick.contracts.stores import Act, CostlyRun, JobRecord, Outlook
from runwick.contracts.waiting import WaitReport
from runwick.stores.redis import (
    begin,
    claim,
    control,
    dispatch,
    events,
    expire,
    lease,
    lists,
    read,
    recover,
    register,
    release,
    reveal,
    runs,
    settle,
    standing,
    steer,
    tend,
    trail,
    why,
    workers,
)
from runwick.stores.redis.address import Address
from runwick.stores.redis.applications import Applications
from runwick.stores.redis.driver import Driver
from runwick.stores.redis.library import Library, library
from runwick.stores.redis.profile import PROFILE

T = TypeVar("T")


class RedisStore:
    """One process's store in one database. It opens at the first act, also after a fork or `close`.

    Args:
        address: of the database.
        options: the limit of a call, and how often the server is looked at.
        concurrent_calls: how many calls besides a worker's own may be under way at once.
        clock: for a guess at the store's time, which alone decides.
        ids: identities for attempts.
        functions: those to call, if not this release's: tests bring some whose time they move.
    """

    def __init__(
        self,
        address: Address,
        *,
        options: RedisOptions,
        concurrent_calls: int,
        clock: Clock,
        ids: Ids,
        functions: Library | None = None,
    ) -> None:
        self._shown: Final = address.shown
        self._driver = Driver(
            address, options, concurrent_calls=concurrent_calls, clock=clock, library=functions or library()
        )
        self._ids = ids
        self._applications = Applications()
        self._serves: set[str] = set()
        """Applications that a worker of this process serves."""
        self._notes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        return self._notes

    @property
    def profile(self) -> str:
        return PROFILE

    @property
    def store_id(self) -> bytes | None:
        return self._driver.store_id

    @property
    def description(self) -> str:
        return f"redis {self._shown} (aof, appendfsync=always)"

    def now_ms(self) -> int:
        return self._driver.now_ms()

    def check(self) -> None:
        """Open the store and check all that could refuse it.

        Raises:
            StoreError: with the code of what is wrong.
        """
        self._notes = self._driver.check()

    def wake_on_work(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._driver.wake_on_work(wake, lambda application: not self._serves or application in self._serves)

    def wake_on_requests(self, worker: bytes, wake: Callable[[], None]) -> Callable[[], None]:
        return self._driver.wake_on_requests(worker, wake)

    def close(self) -> None:
        self._driver.close()

    def run(self, act: Act[T]) -> T:
        return self._driver.run(act)

    async def run_async(self, act: Act[T]) -> T:
        return await self._driver.run_async(act)

    def dispatch(
        self, commands: Sequence[Command], *, continue_on_conflict: bool = False, note: AuditNote | None = None
    ) -> Act[list[Receipt | ItemFailure]]:
        return dispatch.dispatch(commands, continue_on_conflict=continue_on_conflict, note=note)

    def resolve(self, application: str, operation_id: bytes) -> Act[Receipt | None]:
        return dispatch.resolve(application, operation_id)

    def register(
        self, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], scopes: Sequence[ScopeNeed] = ()
    ) -> Act[None]:
        self._serves.add(application)
        return register.register(application, lanes, scopes)

    def claim(self, plan: ClaimPlan) -> Act[Claim]:
        return claim.claim(self._applications, plan, self._ids)

    def begin(self, attempt: Attempt) -> Act[Begun]:
        return begin.begin(self._applications, attempt)

    def release(self, attempts: Sequence[Attempt]) -> Act[list[Answer]]:
        return release.release(self._applications, attempts)

    def settle(self, settlements: Sequence[Settlement]) -> Act[list[Answer]]:
        return settle.settle(self._applications, settlements)

    def renew(self, report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int) -> Act[Beat]:
        return lease.renew(report, held, lease_ms, recovery_interval_ms)

    def recover(
        self, application: str, decide: Callable[[Attempt], Settlement], limit: int, *, worker: bytes | None = None
    ) -> Act[int]:
        return recover.recover(application, decide, limit, worker=worker)

    def expire(self, application: str, limit: int) -> Act[int]:
        return expire.expire(application, limit)

    def tend(self, application: str, after: bytes | None, limit: int) -> Act[Tended]:
        return tend.tend(application, after, limit)

    def depart(self, presence: WorkerPresence) -> Act[None]:
        return lease.depart(presence)

    def control(self, command: ControlCommand) -> Act[ControlReply]:
        return control.control(command)

    def steer(self, command: SteerCommand) -> Act[SteerReply]:
        return steer.steer(command)

    def jobs(self, application: str, chosen: JobFilter, within: Within, after: str | None, limit: int) -> Act[JobPage]:
        return lists.jobs(self._driver, application, chosen, within, after, limit)

    def runs(self, application: str, name: str | None, within: Within, limit: int) -> Act[list[RunRecord]]:
        return runs.runs(application, name, within, limit)

    def backlogs(self, application: str) -> Act[list[Backlog]]:
        return runs.backlogs(application)

    def names(self, application: str) -> Act[list[str]]:
        return lists.names(application)

    def audited(self, application: str, chosen: AuditFilter, after: str | None, limit: int) -> Act[AuditList]:
        return trail.audited(self._driver, application, chosen, after, limit)

    def reveal(self, command: RevealCommand) -> Act[Revealed | None]:
        return reveal.reveal(command)

    def events(self, application: str, after: str | None, limit: int) -> Act[EventPage]:
        return events.events(self._driver, application, after, limit)

    def audit(self, application: str, after: str | None, limit: int) -> Act[AuditPage]:
        return trail.audit(self._driver, application, after, limit)

    def workers(self, application: str) -> Act[list[WorkerRecord]]:
        return workers.workers(application)

    def stack(self, application: str, attempt_id: bytes) -> Act[StackAnswer | None]:
        return workers.stack(application, attempt_id)

    def why(self, application: str, job_id: bytes) -> Act[WaitReport | None]:
        return why.why(application, job_id)

    def queues(self, application: str) -> Act[list[QueueRecord]]:
        return why.queues(application)

    def scopes(self, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[ScopeRecord]]:
        return why.scopes(application, kind, after, limit)

    def rates(self, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[RateRecord]]:
        return why.rates(application, kind, after, limit)

    def standing(self, application: str) -> Act[Standing]:
        return standing.standing(application)

    def job(self, application: str, job_id: bytes) -> Act[JobRecord | None]:
        return read.job(application, job_id)

    def outlook(self, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> Act[Outlook]:
        return read.outlook(application, lanes, kinds)

    def costliest(self, application: str, by: str, limit: int) -> Act[list[CostlyRun]]:
        return read.costliest(application, by, limit)
