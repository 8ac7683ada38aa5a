"""A store on a clock that the test moves, and the commands, plans and outcomes that the suite speaks in."""

import contextlib
import functools
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from runwick.config.options import SqliteOptions
from runwick.contracts.activity import Beat, Mark, Report
from runwick.contracts.administration import Administration
from runwick.contracts.attempts import (
    CLAIM_MAX_ATTEMPTS,
    Attempt,
    Begun,
    Claim,
    ClaimPlan,
    Held,
    Kind,
    Lane,
    LaneTurn,
    WorkerPresence,
)
from runwick.contracts.controls import (
    ControlAction,
    ControlAnswer,
    ControlCommand,
    ControlReply,
    JobTarget,
    ManagementActor,
    SteerAction,
    SteerCommand,
    SteerReply,
)
from runwick.contracts.dispatching import COMMAND_LIFETIME_MAX_MS, Command, Receipt
from runwick.contracts.history import AuditRecord, JobEvent
from runwick.contracts.identity import job_of_operation
from runwick.contracts.limits import LimitKind, QueueRecord, RateNeed, RateRecord, ScopeNeed, ScopeRecord, Tended
from runwick.contracts.listing import AuditFilter, JobFilter, JobSummary, Within
from runwick.contracts.outcomes import Answer, Outcome, OutcomeKind, SettledState, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.revealing import RevealCommand, Secret
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import Act, JobRecord, Store
from runwick.contracts.usage import Usage
from runwick.contracts.waiting import WaitCode, WaitReport
from runwick.runtime.ambient import SystemIds
from runwick.stores.memory.administer import MemoryAdministration
from runwick.stores.memory.store import MemoryStore
from runwick.stores.sqlite.administer import SqliteAdministration
from runwick.stores.sqlite.migrate import migrate
from runwick.stores.sqlite.store import SqliteStore
from tests.ambient import FakeClock

T = TypeVar("T")

APPLICATION = "shop"
BUILD = Kind("reports.build", 1)
SEND = Kind("mails.send", 1)
KINDS = frozenset({BUILD, SEND})
HIGH, MEDIUM, LOW = (Lane("reports", priority) for priority in (Priority.HIGH, Priority.MEDIUM, Priority.LOW))
LEASE_MS = 60_000
RECOVERY_MS = 5_000
ACTOR = ManagementActor("ops-bot", "Ops bot", "service")
LONE = JobPolicy(max_executions=1)
"""The policy of a job that may never run ahead."""
LARGE = b'"' + b"x" * (64 * 1024) + b'"'
"""A payload that a claim does not carry."""
SUCCESS = Outcome(OutcomeKind.SUCCEEDED)
FAILURE = Outcome(OutcomeKind.FAILED, code="handler_failed")
USAGE = Usage(
    wall_us=1_200,
    cpu_user_us=700,
    cpu_system_us=300,
    cpu_children_us=0,
    rss_peak_bytes=1 << 33,
    rss_end_bytes=1 << 20,
    faults_minor=12,
)


class Bench:
    """One store and short ways to its acts."""

    def __init__(
        self,
        name: str,
        store: Store,
        clock: FakeClock,
        administration: Administration,
        another: Callable[[], Store],
        take_capabilities: Callable[[], object] = lambda: None,
    ) -> None:
        self.name = name
        self.store = store
        self.clock = clock
        self.administration = administration
        self.another = another
        """Opens the same store a second time, as another process would; to be closed."""
        self.take_capabilities = take_capabilities
        """Makes applications look like those of a store that is older than any capability."""
        self.ids = SystemIds()
        self.worker = self.ids.ordered()

    def run(self, act: Act[T]) -> T:
        return self.store.run(act)

    def command(self, **changes: Any) -> Command:
        operation_id = self.ids.ordered()
        values: dict[str, Any] = {
            "operation_id": operation_id,
            "job_id": job_of_operation(operation_id),
            "deadline_ms": self.clock.now_ms() + COMMAND_LIFETIME_MAX_MS,
            "application": APPLICATION,
            "kind": BUILD,
            "lane": MEDIUM,
            "policy": JobPolicy(),
            "payload": b"{}",
        }
        return Command(**{**values, **changes})

    def dispatch(self, count: int = 1, **changes: Any) -> list[bytes]:
        """Create jobs alike; answers their ids."""
        return [receipt.job for receipt in self.send(*(self.command(**changes) for _ in range(count)))]

    def send(self, *commands: Command) -> list[Receipt]:
        """Dispatch these, of which none is to fail."""
        receipts = self.run(self.store.dispatch(commands))
        return [receipt for receipt in receipts if isinstance(receipt, Receipt)]

    def plan(self, *, lanes: Sequence[Lane] = (HIGH, MEDIUM, LOW), **changes: Any) -> ClaimPlan:
        """A plan that takes all it can get, from these lanes one after the other."""
        values: dict[str, Any] = {
            "application": APPLICATION,
            "worker": self.worker,
            "claim_token": self.ids.secret(),
            "turns": turns_of(*lanes),
            "kinds": KINDS,
            "free": 100,
            "ahead": 0,
            "payload_bytes": 4 << 20,
            "lease_ms": LEASE_MS,
        }
        return ClaimPlan(**{**values, **changes})

    def claim(self, **changes: Any) -> Claim:
        return self.run(self.store.claim(self.plan(**changes)))

    def claimed(self, **changes: Any) -> Attempt:
        """Dispatch one job and claim it."""
        (job_id,) = self.dispatch(**changes)
        (attempt,) = self.claim().attempts
        assert attempt.job_id == job_id
        return attempt

    def settle(self, attempt: Attempt, outcome: Outcome, state: SettledState, **changes: Any) -> Answer:
        (answer,) = self.run(self.store.settle([Settlement(attempt, outcome, state, **changes)]))
        return answer

    def succeed(self, attempt: Attempt) -> Answer:
        return self.settle(attempt, SUCCESS, JobState.SUCCEEDED)

    def retry(self, attempt: Attempt, delay_ms: int | None = None, outcome: Outcome = FAILURE) -> Answer:
        return self.settle(attempt, outcome, JobState.RETRYING, code="handler_failed", delay_ms=delay_ms)

    def release(self, *attempts: Attempt) -> list[Answer]:
        return self.run(self.store.release(attempts))

    def job(self, job_id: bytes, application: str = APPLICATION) -> JobRecord:
        record = self.run(self.store.job(application, job_id))
        assert record is not None
        return record

    def presence(self, application: str = APPLICATION, **changes: Any) -> WorkerPresence:
        values: dict[str, Any] = {
            "worker": self.worker,
            "application": application,
            "host": "worker-1",
            "process": 7,
            "queues": ["reports"],
            "executors": 2,
        }
        return WorkerPresence(**{**values, **changes})

    def report(self, application: str = APPLICATION, **told: Any) -> Report:
        return Report(presence=self.presence(application), **told)

    def renew(self, *attempts: Attempt, application: str = APPLICATION, **told: Any) -> Beat:
        """Renew these, and tell what is given."""
        report = self.report(application, **told)
        return self.run(self.store.renew(report, held(*attempts), LEASE_MS, RECOVERY_MS))

    def begin(self, attempt: Attempt) -> Begun:
        return self.run(self.store.begin(attempt))

    def marked(self, attempt: Attempt) -> Mark:
        """Tell that the attempt's handler has begun, now."""
        mark = Mark(attempt.job, attempt.claim_token, self.clock.now_ms())
        self.renew(marks=[mark])
        return mark

    def recover(
        self, state: SettledState = JobState.RETRYING, limit: int = 100, worker: bytes | None = None, **changes: Any
    ) -> list[Attempt]:
        """Close attempts that nobody keeps any more, all in the same way; answers what the policy was shown."""
        shown: list[Attempt] = []

        def decide(attempt: Attempt) -> Settlement:
            shown.append(attempt)
            return Settlement(attempt, Outcome(OutcomeKind.ABANDONED, code="lease_lost"), state, **changes)

        assert self.run(self.store.recover(APPLICATION, decide, limit, worker=worker)) == len(shown)
        return shown

    def target(self, job_id: bytes, application: str = APPLICATION) -> JobTarget:
        """The job as it stands now."""
        job = self.job(job_id, application)
        return JobTarget(job_id, job.generation, job.revision)

    def order(self, action: ControlAction, *targets: bytes | JobTarget, **changes: Any) -> ControlCommand:
        """What an operator asks; a job's id alone means the job as it stands now."""
        values: dict[str, Any] = {
            "action": action,
            "command_id": self.ids.ordered(),
            "application": APPLICATION,
            "actor": ACTOR,
            "reason": None,
            "targets": [target if isinstance(target, JobTarget) else self.target(target) for target in targets],
        }
        return ControlCommand(**{**values, **changes})

    def control(self, command: ControlCommand) -> ControlReply:
        return self.run(self.store.control(command))

    def cancel(self, *targets: bytes | JobTarget, **changes: Any) -> list[ControlAnswer]:
        return list(self.control(self.order(ControlAction.CANCEL, *targets, **changes)).answers)

    def steering(self, action: SteerAction, kind: LimitKind, key: str, **changes: Any) -> SteerCommand:
        """What an operator asks of a queue or a capacity, as it stands now."""
        values: dict[str, Any] = {
            "action": action,
            "command_id": self.ids.ordered(),
            "application": APPLICATION,
            "actor": ACTOR,
            "reason": None,
            "kind": kind,
            "key": key,
        }
        if "expected_revision" not in changes:
            stands = self.queue(key) if action is not SteerAction.SET_CAPACITY else self.scope(key, kind)
            values["expected_revision"] = stands.revision
        return SteerCommand(**{**values, **changes})

    def steer(self, command: SteerCommand) -> SteerReply:
        return self.run(self.store.steer(command))

    def pause(self, queue: str = "reports", **changes: Any) -> SteerReply:
        return self.steer(self.steering(SteerAction.PAUSE, LimitKind.QUEUE, queue, **changes))

    def resume(self, queue: str = "reports", **changes: Any) -> SteerReply:
        return self.steer(self.steering(SteerAction.RESUME, LimitKind.QUEUE, queue, **changes))

    def limit(self, key: str, capacity: int, kind: LimitKind = LimitKind.RESOURCE, **changes: Any) -> SteerReply:
        """Give a scope another capacity."""
        return self.steer(self.steering(SteerAction.SET_CAPACITY, kind, key, capacity=capacity, **changes))

    def queue(self, name: str = "reports") -> QueueRecord:
        (record,) = (record for record in self.run(self.store.queues(APPLICATION)) if record.queue == name)
        return record

    def scopes(self, kind: LimitKind = LimitKind.RESOURCE) -> list[ScopeRecord]:
        return self.run(self.store.scopes(APPLICATION, kind, None, 100))

    def scope(self, key: str, kind: LimitKind = LimitKind.RESOURCE) -> ScopeRecord:
        (record,) = (record for record in self.scopes(kind) if record.key == key)
        return record

    def rates(self, kind: LimitKind = LimitKind.RESOURCE) -> list[RateRecord]:
        return self.run(self.store.rates(APPLICATION, kind, None, 100))

    def rate(self, key: str, kind: LimitKind = LimitKind.RESOURCE) -> RateRecord:
        (record,) = (record for record in self.rates(kind) if record.key == key)
        return record

    def why(self, job_id: bytes) -> WaitReport:
        report = self.run(self.store.why(APPLICATION, job_id))
        assert report is not None
        return report

    def reasons(self, job_id: bytes) -> list[WaitCode]:
        return [reason.code for reason in self.why(job_id).reasons]

    def listed(self, chosen: JobFilter | None = None, within: Within = None, limit: int = 100) -> list[JobSummary]:
        """All jobs of a list, read page by page."""
        found: list[JobSummary] = []
        after = None
        while True:
            page = self.run(self.store.jobs(APPLICATION, chosen or JobFilter(), within, after, limit))
            assert len(page.jobs) <= limit
            found += page.jobs
            if (after := page.cursor) is None:
                return found

    def trail(self, limit: int = 100, **chosen: Any) -> list[AuditRecord]:
        """All records of a list of the audit trail, read page by page."""
        found: list[AuditRecord] = []
        after = None
        while True:
            page = self.run(self.store.audited(APPLICATION, AuditFilter(**chosen), after, limit))
            assert len(page.records) <= limit
            found += page.records
            if (after := page.cursor) is None:
                return found

    def showing(self, what: Secret, job_id: bytes, **changes: Any) -> RevealCommand:
        """What an operator asks to see of a job."""
        values: dict[str, Any] = {
            "what": what,
            "command_id": self.ids.ordered(),
            "application": APPLICATION,
            "actor": ACTOR,
            "reason": None,
            "job_id": job_id,
        }
        return RevealCommand(**{**values, **changes})

    def tend(self, after: bytes | None = None, limit: int = 100) -> Tended:
        return self.run(self.store.tend(APPLICATION, after, limit))

    def events(self, application: str = APPLICATION, after: str | None = None, limit: int = 100) -> list[JobEvent]:
        """All that happened behind a cursor, read page by page."""
        events: list[JobEvent] = []
        more = True
        while more:
            page = self.run(self.store.events(application, after, limit))
            assert len(page.events) <= limit
            events += page.events
            after, more = page.cursor, page.more
        return events

    def audit(self, application: str = APPLICATION, after: str | None = None, limit: int = 100) -> list[AuditRecord]:
        """All that operators did behind a cursor, read page by page."""
        records: list[AuditRecord] = []
        more = True
        while more:
            page = self.run(self.store.audit(application, after, limit))
            assert len(page.records) <= limit
            records += page.records
            after, more = page.cursor, page.more
        return records


def turns_of(*lanes: Lane, most: int = CLAIM_MAX_ATTEMPTS) -> list[LaneTurn]:
    """Turns that take these lanes one after the other."""
    return [LaneTurn(lane, most) for lane in lanes]


def resource(key: str, capacity: int = 1) -> ScopeNeed:
    """A scope that jobs with this key share."""
    return ScopeNeed(LimitKind.RESOURCE, key, capacity)


def capped(queue: str, capacity: int) -> ScopeNeed:
    """A scope that all jobs of a queue need."""
    return ScopeNeed(LimitKind.QUEUE, queue, capacity)


def capped_type(name: str, capacity: int) -> ScopeNeed:
    """A scope that all jobs of a name need."""
    return ScopeNeed(LimitKind.JOB_TYPE, name, capacity)


def window(key: str, most: int, window_ms: int = 1_000) -> RateNeed:
    """A rate window that jobs with this key share."""
    return RateNeed(LimitKind.RESOURCE, key, most, window_ms)


def type_window(name: str, most: int, window_ms: int = 1_000) -> RateNeed:
    """The rate window of the jobs of a name."""
    return RateNeed(LimitKind.JOB_TYPE, name, most, window_ms)


def held(*attempts: Attempt) -> list[Held]:
    return [Held(attempt.job, attempt.claim_token) for attempt in attempts]


def ids_of(attempts: Sequence[Attempt]) -> list[bytes]:
    return [attempt.job_id for attempt in attempts]


def unlike(attempt: Attempt, **changes: Any) -> Attempt:
    """The same attempt, but for some fields."""
    return msgspec.structs.replace(attempt, **changes)


def memory_bench() -> Bench:
    clock, ids = FakeClock(), SystemIds()
    store = MemoryStore(clock=clock, ids=ids)

    def another() -> MemoryStore:
        return MemoryStore(clock=clock, ids=ids, tables=store.tables)

    def take_capabilities() -> None:
        for application in store.tables.applications.values():
            application.capabilities.clear()

    administration = MemoryAdministration(store.tables, clock, ids)
    return Bench("memory", store, clock, administration, another, take_capabilities)


def sqlite_bench(folder: Path) -> Bench:
    """A store in a file of its own; `Bench.store` is to be closed."""
    clock, ids = FakeClock(), SystemIds()
    path = folder / "jobs.db"
    path.write_bytes(_installed())

    def opened() -> SqliteStore:
        return SqliteStore(path, options=SqliteOptions(), clock=clock, ids=ids)

    def take_capabilities() -> None:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("UPDATE runwick_application SET capabilities = '[]'")

    return Bench("sqlite", opened(), clock, SqliteAdministration(path, clock, ids), opened, take_capabilities)


@functools.cache
def _installed() -> bytes:
    """A migrated file to copy: migrating anew for each test would take longer than the tests."""
    with tempfile.TemporaryDirectory(prefix="runwick-conformance-") as folder:
        path = Path(folder) / "jobs.db"
        migrate(path, FakeClock(), SystemIds())
        return path.read_bytes()
