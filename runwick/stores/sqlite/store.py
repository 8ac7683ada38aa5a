"""The SQLite store: every act of the store protocols on one file, which all processes of one host share.

The acts are the modules beside this one, under the same names; the driver runs them.
"""

import contextlib
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from runwick.config.options import SqliteOptions
from runwick.contracts.activity import Beat, Report, StackAnswer, WorkerRecord
from runwick.contracts.administration import Standing
from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.attempts import Attempt, Begun, Claim, ClaimPlan, Held, Kind, Lane, WorkerPresence
from runwick.contracts.controls import (
    ControlAction,
    ControlCommand,
    ControlReply,
    SteerAction,
    SteerCommand,
    SteerReply,
)
from runwick.contracts.dispatching import Command, Receipt
from runwick.contracts.errors import ItemFailure, RunwickError
from runwick.contracts.history import AuditPage, EventPage
from runwick.contracts.limits import LimitKind, QueueRecord, RateRecord, ScopeNeed, ScopeRecord, Tended
from runwick.contracts.listing import AuditFilter, AuditList, Backlog, JobFilter, JobPage, RunRecord, Within
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.revealing import AuditNote, RevealCommand, Revealed
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act, CostlyRun, JobRecord, Outlook
from runwick.contracts.waiting import WaitReport
from runwick.stores.sqlite import (
    begin,
    claim,
    control,
    dispatch,
    expire,
    history,
    lease,
    lists,
    read,
    receipts,
    recover,
    register,
    release,
    reveal,
    runs,
    settle,
    standing,
    steer,
    tend,
    why,
)
from runwick.stores.sqlite.clock import StoreClock
from runwick.stores.sqlite.driver import Driver
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.going import GoesOn, following
from runwick.stores.sqlite.hint import Hint
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.requests import Requests
from runwick.stores.steps import Steps

T = TypeVar("T")

_AHEAD_WORTH_A_NOTE_MS: Final = 1_000


class MakesWorkDue(Act[T]):
    """An act after whose commit a worker may find work."""

    __slots__ = ()


class Claims(Act[Claim]):
    """A claim, which may call jobs for other workers."""

    __slots__ = ("called",)

    def __init__(self, act: Act[Claim], steps: Callable[["Claims"], Steps[Claim]]) -> None:
        super().__init__(act.name, lambda: steps(self))
        self.called = False


class AsksWorkers(MakesWorkDue[T]):
    """An act after whose commit workers have something to hear."""

    __slots__ = ("workers",)

    def __init__(self, act: Act[T], workers: Collection[bytes]) -> None:
        super().__init__(act.name, act.steps)
        self.workers: Final = workers


class SqliteStore:
    """One process's store on one file. It opens at the first act, also after a fork or `close`.

    Args:
        path: absolute.
        options: waiting and threads.
        clock: the host's, by which leases and due times are judged as long as it does not go back.
        ids: identities for attempts.
    """

    def __init__(self, path: Path, *, options: SqliteOptions, clock: Clock, ids: Ids) -> None:
        self.path: Final = path
        self._clock = StoreClock(clock)
        self._ids = ids
        self._interned = Interned()
        self._gate = Gate(path, self._clock)
        self._driver = Driver(path, options, self._gate, self._interned.has_news, self._interned.forget)
        self._hint = Hint(Path(f"{os.path.realpath(path)}-wal"))
        self._requests = Requests()
        self._notes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        return self._notes

    @property
    def profile(self) -> str:
        return receipts.PROFILE

    @property
    def description(self) -> str:
        return f"sqlite {self.path} (wal, synchronous=full)"

    @property
    def store_id(self) -> bytes | None:
        return self._gate.store_id

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def check(self) -> None:
        """Open the store and check all that could refuse it.

        Raises:
            StoreError: with the code of what is wrong.
        """
        self._notes = self._driver.check()
        if (ahead_ms := self._clock.ahead_ms()) > _AHEAD_WORTH_A_NOTE_MS:
            self._notes += (
                f"the time in {self.path} is {ahead_ms // 1000:,} s ahead of this host's clock, which was set back; it "
                "goes on a little slower until they meet",
            )

    def wake_on_work(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._hint.subscribe(wake)

    def wake_on_requests(self, worker: bytes, wake: Callable[[], None]) -> Callable[[], None]:
        return self._requests.subscribe(worker, wake)

    def close(self) -> None:
        self._requests.close()
        self._hint.close()
        self._driver.close()

    def run(self, act: Act[T]) -> T:
        answer = self._driver.run(act)
        self._tell(act)
        with contextlib.suppress(RunwickError):  # what does not follow now is found by the recovery pass
            for next_act in following(act):
                self._driver.run(next_act)
                self._tell(next_act)
        return answer

    async def run_async(self, act: Act[T]) -> T:
        answer = await self._driver.run_async(act)
        self._tell(act)
        with contextlib.suppress(RunwickError):
            for next_act in following(act):
                await self._driver.run_async(next_act)
                self._tell(next_act)
        return answer

    def dispatch(
        self, commands: Sequence[Command], *, continue_on_conflict: bool = False, note: AuditNote | None = None
    ) -> Act[list[Receipt | ItemFailure]]:
        act = dispatch.dispatch(
            self._gate, self._interned, commands, self._clock, continue_on_conflict=continue_on_conflict, note=note
        )
        return _due(act)

    def resolve(self, application: str, operation_id: bytes) -> Act[Receipt | None]:
        return dispatch.resolve(application, operation_id)

    def register(
        self, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], scopes: Sequence[ScopeNeed] = ()
    ) -> Act[None]:
        return register.register(self._gate, self._interned, application, lanes, kinds, scopes, self._clock)

    def claim(self, plan: ClaimPlan) -> Act[Claim]:
        return self._calm_when_empty(claim.claim(self._gate, self._interned, plan, self._clock, self._ids))

    def begin(self, attempt: Attempt) -> Act[Begun]:
        act = begin.begin(self._gate, self._interned, attempt, self._clock)
        return _due(act) if attempt.holds else act

    def release(self, attempts: Sequence[Attempt]) -> Act[list[Answer]]:
        return _due(release.release(self._gate, self._interned, attempts, self._clock))

    def settle(self, settlements: Sequence[Settlement]) -> Act[list[Answer]]:
        act = settle.settle(self._gate, self._interned, settlements, self._clock)
        return _due(act) if _make_due(settlements) else act

    def renew(self, report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int) -> Act[Beat]:
        return lease.renew(self._gate, self._interned, report, held, lease_ms, recovery_interval_ms, self._clock)

    def recover(
        self, application: str, decide: Callable[[Attempt], Settlement], limit: int, *, worker: bytes | None = None
    ) -> Act[int]:
        return _due(recover.recover(self._gate, self._interned, application, decide, limit, worker, self._clock))

    def expire(self, application: str, limit: int) -> Act[int]:
        return _due(expire.expire(self._gate, self._interned, application, limit, self._clock))

    def tend(self, application: str, after: bytes | None, limit: int) -> Act[Tended]:
        return tend.tend(self._gate, self._interned, application, after, limit, self._clock)

    def depart(self, presence: WorkerPresence) -> Act[None]:
        return lease.depart(self._gate, presence, self._clock)

    def control(self, command: ControlCommand) -> Act[ControlReply]:
        asked: set[bytes] = set()
        act = control.control(self._gate, self._interned, command, self._clock, asked.add)
        return _due(act) if command.action in (ControlAction.RETRY, ControlAction.RERUN) else AsksWorkers(act, asked)

    def steer(self, command: SteerCommand) -> Act[SteerReply]:
        act = steer.steer(self._gate, self._interned, command, self._clock)
        return Act(act.name, act.steps) if command.action is SteerAction.PAUSE else act

    def jobs(self, application: str, chosen: JobFilter, within: Within, after: str | None, limit: int) -> Act[JobPage]:
        return lists.jobs(self._gate, self._interned, application, chosen, within, after, limit)

    def runs(self, application: str, name: str | None, within: Within, limit: int) -> Act[list[RunRecord]]:
        return runs.runs(self._interned, application, name, within, limit)

    def backlogs(self, application: str) -> Act[list[Backlog]]:
        return runs.backlogs(self._interned, application, self._clock)

    def names(self, application: str) -> Act[list[str]]:
        return lists.names(self._interned, application)

    def audited(self, application: str, chosen: AuditFilter, after: str | None, limit: int) -> Act[AuditList]:
        return lists.audited(self._gate, self._interned, application, chosen, after, limit)

    def reveal(self, command: RevealCommand) -> Act[Revealed | None]:
        return reveal.reveal(self._gate, self._interned, command, self._clock)

    def events(self, application: str, after: str | None, limit: int) -> Act[EventPage]:
        return history.events(self._gate, self._interned, application, after, limit)

    def audit(self, application: str, after: str | None, limit: int) -> Act[AuditPage]:
        return history.audit(self._gate, self._interned, application, after, limit)

    def workers(self, application: str) -> Act[list[WorkerRecord]]:
        return history.workers(application, self._clock)

    def stack(self, application: str, attempt_id: bytes) -> Act[StackAnswer | None]:
        return history.stack(application, attempt_id)

    def why(self, application: str, job_id: bytes) -> Act[WaitReport | None]:
        return why.why(self._interned, application, job_id, self._clock)

    def queues(self, application: str) -> Act[list[QueueRecord]]:
        return why.queues(application)

    def scopes(self, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[ScopeRecord]]:
        return why.scopes(application, kind, after, limit)

    def rates(self, application: str, kind: LimitKind, after: bytes | None, limit: int) -> Act[list[RateRecord]]:
        return why.rates(application, kind, after, limit, self._clock)

    def standing(self, application: str) -> Act[Standing]:
        return standing.standing(application)

    def job(self, application: str, job_id: bytes) -> Act[JobRecord | None]:
        return read.job(application, job_id)

    def outlook(self, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> Act[Outlook]:
        return read.outlook(self._interned, application, lanes, kinds, self._clock)

    def costliest(self, application: str, by: str, limit: int) -> Act[list[CostlyRun]]:
        return read.costliest(application, by, limit)

    def _tell(self, act: Act[Any]) -> None:
        """Wake whom a committed act concerns."""
        if isinstance(act, MakesWorkDue | GoesOn) or (isinstance(act, Claims) and act.called):
            self._hint.tell()
        if isinstance(act, AsksWorkers):
            self._requests.tell(act.workers)

    def _calm_when_empty(self, act: Act[Claim]) -> Act[Claim]:
        """An empty claim means an idle worker: still under the write lock it arms the hint."""

        def steps(claims: Claims) -> Steps[Claim]:
            answer = yield from act.steps()
            claims.called = bool(answer.called_in_ms)
            if not answer.attempts:
                self._hint.arm()
                self._driver.calm()
            return answer

        return Claims(act, steps)


def _due(act: Act[T]) -> Act[T]:
    return MakesWorkDue(act.name, act.steps)


def _make_due(settlements: Sequence[Settlement]) -> bool:
    """Whether one of their jobs is due at once, or another may be, which waits for what one of these held."""
    for settlement in settlements:
        if settlement.attempt.holds or (settlement.state is JobState.RETRYING and not settlement.delay_ms):
            return True
    return False
