"""The PostgreSQL store: every act of the store protocols on one database, which processes of many hosts share.

The acts are the modules beside this one, under the same names; the driver runs them.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from runwick.config.options import PostgresOptions
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
from runwick.runtime.place import in_executor
from runwick.stores.postgres import (
    begin,
    claim,
    control,
    dispatch,
    events,
    expire,
    lease,
    limits,
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
from runwick.stores.postgres.address import Address
from runwick.stores.postgres.bound import Bound, MakesDue
from runwick.stores.postgres.calling import call_again
from runwick.stores.postgres.driver import Driver
from runwick.stores.postgres.recalling import Recaller

T = TypeVar("T")


class PostgresStore:
    """One process's store in one database. It opens at the first act, also after a fork or `close`.

    Args:
        address: of the database.
        options: the limit of a call, and whether unsafe durability is accepted.
        concurrent_calls: how many calls besides a worker's own may be under way at once.
        clock: for durations and for a guess at the store's time, which alone decides.
        ids: identities for attempts.
    """

    def __init__(
        self, address: Address, *, options: PostgresOptions, concurrent_calls: int, clock: Clock, ids: Ids
    ) -> None:
        self._shown: Final = address.shown
        self._driver = Driver(
            address, options, concurrent_calls=concurrent_calls, clock=clock, opened=lambda: self._bound.forget()
        )
        self._bound = Bound(self._driver, allow_unsafe=options.allow_unsafe_durability, clock=clock, ids=ids)
        self._recaller = Recaller(self._call_again)
        self._notes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        return self._notes

    @property
    def profile(self) -> str:
        return self._driver.profile

    @property
    def store_id(self) -> bytes | None:
        return self._driver.store_id

    @property
    def description(self) -> str:
        return f"postgres {self._shown}"

    def now_ms(self) -> int:
        return self._driver.now_ms()

    def check(self) -> None:
        """Open the store and check all that could refuse it.

        Raises:
            StoreError: with the code of what is wrong.
        """
        self._notes = self._driver.check()

    def wake_on_work(self, wake: Callable[[], None]) -> Callable[[], None]:
        serves = self._bound.names.serves
        return self._driver.wake_on_work(wake, lambda application: not serves or application in serves)

    def wake_on_requests(self, worker: bytes, wake: Callable[[], None]) -> Callable[[], None]:
        return self._driver.wake_on_requests(worker, wake)

    def close(self) -> None:
        self._recaller.close()
        self._driver.close()

    def run(self, act: Act[T]) -> T:
        answer = self._driver.run(act)
        self._tell(act)
        return answer

    async def run_async(self, act: Act[T]) -> T:
        answer = await self._driver.run_async(act)
        self._tell(act)
        return answer

    def dispatch(
        self, commands: Sequence[Command], *, continue_on_conflict: bool = False, note: AuditNote | None = None
    ) -> Act[list[Receipt | ItemFailure]]:
        return dispatch.dispatch(self._bound, commands, continue_on_conflict=continue_on_conflict, note=note)

    def resolve(self, application: str, operation_id: bytes) -> Act[Receipt | None]:
        return dispatch.resolve(self._bound, application, operation_id)

    def register(
        self, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], scopes: Sequence[ScopeNeed] = ()
    ) -> Act[None]:
        return register.register(self._bound, application, lanes, kinds, scopes)

    def claim(self, plan: ClaimPlan) -> Act[Claim]:
        return claim.claim(self._bound, plan)

    def begin(self, attempt: Attempt) -> Act[Begun]:
        return begin.begin(self._bound, attempt)

    def release(self, attempts: Sequence[Attempt]) -> Act[list[Answer]]:
        return release.release(self._bound, attempts)

    def settle(self, settlements: Sequence[Settlement]) -> Act[list[Answer]]:
        return settle.settle(self._bound, settlements)

    def renew(self, report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int) -> Act[Beat]:
        return lease.renew(self._bound, report, held, lease_ms, recovery_interval_ms)

    def recover(
        self, application: str, decide: Callable[[Attempt], Settlement], limit: int, *, worker: bytes | None = None
    ) -> Act[int]:
        return recover.recover(self._bound, application, decide, limit, worker=worker)

    def expire(self, application: str, limit: int) -> Act[int]:
        return expire.expire(self._bound, application, limit)

    def tend(self, application: str, after: bytes | None, limit: int) -> Act[Tended]:
        return tend.tend(self._bound, application, after, limit)

    def depart(self, presence: WorkerPresence) -> Act[None]:
        return lease.depart(self._bound, presence)

    def control(self, command: ControlCommand) -> Act[ControlReply]:
        return control.control(self._bound, command)

    def steer(self, command: SteerCommand) -> Act[SteerReply]:
        return steer.steer(self._bound, command)

    def jobs(self, application: str, chosen: JobFilter, within: Within, after: str | None, limit: int) -> Act[JobPage]:
        return lists.jobs(self._bound, application, chosen, within, after, limit)

    def runs(self, application: str, name: str | None, within: Within, limit: int) -> Act[list[RunRecord]]:
        return runs.runs(self._bound, application, name, within, limit)

    def backlogs(self, application: str) -> Act[list[Backlog]]:
        return runs.backlogs(self._bound, application)

    def names(self, application: str) -> Act[list[str]]:
        return runs.names(self._bound, application)

    def audited(self, application: str, chosen: AuditFilter, after: str | None, limit: int) -> Act[AuditList]:
        return trail.audited(self._bound, application, chosen, after, limit)

    def reveal(self, command: RevealCommand) -> Act[Revealed | None]:
        return reveal.reveal(self._bound, command)

    def events(self, application: str, after: str | None, limit: int) -> Act[EventPage]:
        return events.events(self._bound, application, after, limit)

    def audit(self, application: str, after: str | None, limit: int) -> Act[AuditPage]:
        return events.audit(self._bound, application, after, limit)

    def workers(self, application: str) -> Act[list[WorkerRecord]]:
        return workers.workers(self._bound, application)

    def stack(self, application: str, attempt_id: bytes) -> Act[StackAnswer | None]:
        return workers.stack(self._bound, application, attempt_id)

    def why(self, application: str, job_id: bytes) -> Act[WaitReport | None]:
        return why.why(self._bound, application, job_id)

    def queues(self, application: str) -> Act[list[QueueRecord]]:
        return limits.queues(self._bound, application)

    def scopes(self, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[ScopeRecord]]:
        return limits.scopes(self._bound, application, kind, after, limit)

    def rates(self, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[RateRecord]]:
        return limits.rates(self._bound, application, kind, after, limit)

    def standing(self, application: str) -> Act[Standing]:
        return standing.standing(self._bound, application)

    def job(self, application: str, job_id: bytes) -> Act[JobRecord | None]:
        return read.job(self._bound, application, job_id)

    def outlook(self, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> Act[Outlook]:
        return read.outlook(self._bound, application, lanes, kinds)

    def costliest(self, application: str, by: str, limit: int) -> Act[list[CostlyRun]]:
        return read.costliest(self._bound, application, by, limit)

    def _tell(self, act: Act[T]) -> None:
        """Work that is due wakes who may take it, after the commit and when the connection is free again; what the act
        owes to limits is made up for a little later."""
        if isinstance(act, MakesDue):
            for application in act.due:
                self._driver.notify(application, is_told=act.due.is_told)
            if act.due.owed:
                self._recaller.owe(act.due.owed)
            if in_executor():
                self._recaller.make_up()

    def _call_again(self, limit: bytes, owed: int) -> tuple[int, int | None]:
        act = call_again(self._bound, limit, owed)
        called = self._driver.run(act)
        for application in act.due:
            self._driver.notify(application)
        return called, act.due.owed.get(limit)
