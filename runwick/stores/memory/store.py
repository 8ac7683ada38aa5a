"""The memory store: every act of the store protocols in one process, gone with it.

Acts run one at a time under a lock, so that what holds for the stores in files holds here too.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

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
from runwick.stores import refusals
from runwick.stores.memory import (
    begin,
    claim,
    control,
    dispatch,
    expire,
    history,
    lease,
    lists,
    read,
    recover,
    register,
    release,
    reveal,
    settle,
    standing,
    steer,
    tend,
    why,
)
from runwick.stores.memory.tables import Tables

T = TypeVar("T")


class MemoryStore:
    """A store that lives as long as this object.

    Args:
        clock: the time by which leases and due times are judged.
        ids: identities for attempts.
        tables: what another store object holds, to see the same jobs; without it the store is a new one.
    """

    def __init__(self, *, clock: Clock, ids: Ids, tables: Tables | None = None) -> None:
        self.notes: Final[tuple[str, ...]] = ()
        self.tables: Final = tables if tables is not None else Tables(ids.ordered())
        self.store_id: Final = self.tables.store_id
        self._clock = clock
        self._ids = ids
        self._wakes: list[Callable[[], None]] = []
        self._request_wakes: list[tuple[bytes, Callable[[], None]]] = []

    @property
    def profile(self) -> str:
        return dispatch.PROFILE

    @property
    def description(self) -> str:
        return "memory (gone when the process ends)"

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def check(self) -> None:
        """Nothing can be wrong with it."""

    def close(self) -> None:
        """Nothing to close; what it holds stays until the object goes."""

    def wake_on_work(self, wake: Callable[[], None]) -> Callable[[], None]:
        self._wakes.append(wake)
        return lambda: self._wakes.remove(wake) if wake in self._wakes else None

    def wake_on_requests(self, worker: bytes, wake: Callable[[], None]) -> Callable[[], None]:
        entry = worker, wake
        self._request_wakes.append(entry)
        return lambda: self._request_wakes.remove(entry) if entry in self._request_wakes else None

    def run(self, act: Act[T]) -> T:
        with self.tables.lock:
            if self.tables.store_id != self.store_id:
                raise refusals.identity_mismatch(self.store_id, self.tables.store_id)
            answer = _answer(act)
            made_due, self.tables.made_due = self.tables.made_due, False
            wanted, self.tables.wanted = self.tables.wanted, set()
        wakes = [*self._wakes] if made_due else []
        wakes += [wake for worker, wake in self._request_wakes if worker in wanted]
        for wake in wakes:
            wake()
        return answer

    async def run_async(self, act: Act[T]) -> T:
        return self.run(act)

    def dispatch(
        self, commands: Sequence[Command], *, continue_on_conflict: bool = False, note: AuditNote | None = None
    ) -> Act[list[Receipt | ItemFailure]]:
        return dispatch.dispatch(
            self.tables, commands, self._clock, continue_on_conflict=continue_on_conflict, note=note
        )

    def resolve(self, application: str, operation_id: bytes) -> Act[Receipt | None]:
        return dispatch.resolve(self.tables, application, operation_id)

    def register(
        self, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], scopes: Sequence[ScopeNeed] = ()
    ) -> Act[None]:
        return register.register(self.tables, application, lanes, scopes)

    def claim(self, plan: ClaimPlan) -> Act[Claim]:
        return claim.claim(self.tables, plan, self._clock, self._ids)

    def begin(self, attempt: Attempt) -> Act[Begun]:
        return begin.begin(self.tables, attempt, self._clock)

    def release(self, attempts: Sequence[Attempt]) -> Act[list[Answer]]:
        return release.release(self.tables, attempts, self._clock)

    def settle(self, settlements: Sequence[Settlement]) -> Act[list[Answer]]:
        return settle.settle(self.tables, settlements, self._clock)

    def renew(self, report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int) -> Act[Beat]:
        return lease.renew(self.tables, report, held, lease_ms, recovery_interval_ms, self._clock)

    def recover(
        self, application: str, decide: Callable[[Attempt], Settlement], limit: int, *, worker: bytes | None = None
    ) -> Act[int]:
        return recover.recover(self.tables, application, decide, limit, worker, self._clock)

    def expire(self, application: str, limit: int) -> Act[int]:
        return expire.expire(self.tables, application, limit, self._clock)

    def tend(self, application: str, after: bytes | None, limit: int) -> Act[Tended]:
        return tend.tend(self.tables, application, after, limit, self._clock)

    def depart(self, presence: WorkerPresence) -> Act[None]:
        return lease.depart(self.tables, presence, self._clock)

    def control(self, command: ControlCommand) -> Act[ControlReply]:
        return control.control(self.tables, command, self._clock)

    def steer(self, command: SteerCommand) -> Act[SteerReply]:
        return steer.steer(self.tables, command, self._clock)

    def jobs(self, application: str, chosen: JobFilter, within: Within, after: str | None, limit: int) -> Act[JobPage]:
        return lists.jobs(self.tables, application, chosen, within, after, limit)

    def runs(self, application: str, name: str | None, within: Within, limit: int) -> Act[list[RunRecord]]:
        return lists.runs(self.tables, application, name, within, limit)

    def backlogs(self, application: str) -> Act[list[Backlog]]:
        return lists.backlogs(self.tables, application, self._clock)

    def names(self, application: str) -> Act[list[str]]:
        return lists.names(self.tables, application)

    def audited(self, application: str, chosen: AuditFilter, after: str | None, limit: int) -> Act[AuditList]:
        return lists.audited(self.tables, application, chosen, after, limit)

    def reveal(self, command: RevealCommand) -> Act[Revealed | None]:
        return reveal.reveal(self.tables, command, self._clock)

    def events(self, application: str, after: str | None, limit: int) -> Act[EventPage]:
        return history.events(self.tables, application, after, limit)

    def audit(self, application: str, after: str | None, limit: int) -> Act[AuditPage]:
        return history.audit(self.tables, application, after, limit)

    def workers(self, application: str) -> Act[list[WorkerRecord]]:
        return read.workers(self.tables, application, self._clock)

    def stack(self, application: str, attempt_id: bytes) -> Act[StackAnswer | None]:
        return read.stack(self.tables, application, attempt_id)

    def why(self, application: str, job_id: bytes) -> Act[WaitReport | None]:
        return why.why(self.tables, application, job_id, self._clock)

    def queues(self, application: str) -> Act[list[QueueRecord]]:
        return why.queues(self.tables, application)

    def scopes(self, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[ScopeRecord]]:
        return why.scopes(self.tables, application, kind, after, limit)

    def rates(self, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[RateRecord]]:
        return why.rates(self.tables, application, kind, after, limit, self._clock)

    def standing(self, application: str) -> Act[Standing]:
        return standing.standing(self.tables, application)

    def job(self, application: str, job_id: bytes) -> Act[JobRecord | None]:
        return read.job(self.tables, application, job_id)

    def outlook(self, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> Act[Outlook]:
        return read.outlook(self.tables, application, lanes, kinds, self._clock)

    def costliest(self, application: str, by: str, limit: int) -> Act[list[CostlyRun]]:
        return read.costliest(self.tables, application, by, limit)


def _answer(act: Act[T]) -> T:
    steps = act.steps()
    try:
        next(steps)
    except StopIteration as end:
        answer: T = end.value
        return answer
    raise AssertionError(f"act {act.name} of another store was run on the memory store")
