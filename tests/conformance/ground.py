"""A store on a clock that the test moves, and the commands, plans and outcomes that the suite speaks in."""

import functools
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from runwick.config.options import SqliteOptions
from runwick.contracts.activity import Beat, Mark, Report
from runwick.contracts.administration import Administration
from runwick.contracts.attempts import Attempt, Begun, Claim, ClaimPlan, Held, Kind, Lane, WorkerPresence
from runwick.contracts.controls import (
    ControlAction,
    ControlAnswer,
    ControlCommand,
    ControlReply,
    JobTarget,
    ManagementActor,
)
from runwick.contracts.dispatching import COMMAND_LIFETIME_MAX_MS, Command
from runwick.contracts.history import AuditRecord, JobEvent
from runwick.contracts.identity import job_of_operation
from runwick.contracts.outcomes import Answer, Outcome, OutcomeKind, SettledState, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import Act, JobRecord, Store
from runwick.contracts.usage import Usage
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
    ) -> None:
        self.name = name
        self.store = store
        self.clock = clock
        self.administration = administration
        self.another = another
        """Opens the same store a second time, as another process would; to be closed."""
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
        commands = [self.command(**changes) for _ in range(count)]
        return [receipt.job for receipt in self.run(self.store.dispatch(commands))]

    def plan(self, **changes: Any) -> ClaimPlan:
        values: dict[str, Any] = {
            "application": APPLICATION,
            "worker": self.worker,
            "claim_token": self.ids.secret(),
            "lanes": (HIGH, MEDIUM, LOW),
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

    def presence(self, application: str = APPLICATION) -> WorkerPresence:
        return WorkerPresence(
            worker=self.worker, application=application, host="worker-1", process=7, queues=["reports"], executors=2
        )

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
    administration = MemoryAdministration(store.tables, clock, ids)
    return Bench("memory", store, clock, administration, lambda: MemoryStore(clock=clock, ids=ids, tables=store.tables))


def sqlite_bench(folder: Path) -> Bench:
    """A store in a file of its own; `Bench.store` is to be closed."""
    clock, ids = FakeClock(), SystemIds()
    path = Path(shutil.copy(_installed(), folder / "jobs.db"))

    def opened() -> SqliteStore:
        return SqliteStore(path, options=SqliteOptions(), clock=clock, ids=ids)

    return Bench("sqlite", opened(), clock, SqliteAdministration(path, clock, ids), opened)


@functools.cache
def _installed_folder() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="runwick-conformance-")
    migrate(Path(folder.name) / "jobs.db", FakeClock(), SystemIds())
    return folder


def _installed() -> Path:
    """A migrated file to copy: migrating anew for each test would take longer than the tests."""
    return Path(_installed_folder().name) / "jobs.db"
