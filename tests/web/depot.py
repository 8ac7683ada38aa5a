"""An application whose store has a job in every state in each of two queues, each with a tenant of its own; it is read
and put back row for row."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from runwick import Job, ManagementActor, PerResource, Runwick
from runwick.contracts.activity import ExecutorActivity, Mark, Report, StackAnswer
from runwick.contracts.attempts import Attempt, ClaimPlan, Held, LaneTurn, WorkerPresence
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import Answer, BlackBox, ErrorDetail, Outcome, OutcomeKind, SettledState, Settlement
from runwick.contracts.states import JobState
from runwick.policy.lanes import lanes_of
from tests.web.crossing import TENANTS

PRIVATE: Final = "swordfish"
"""In every payload, result, error, black box and stack, and nowhere else."""
KEY: Final = "line/7"
"""Of the resource that packing holds."""
OPERATOR: Final = ManagementActor("seed", "seed", "service")

Rows = dict[str, list[tuple[object, ...]]]

_LEASE_MS: Final = 600_000


class Pack(Job):
    note: str


class Ship(Job):
    note: str


NAMES: Final = {"own": "order.pack", "other": "order.ship"}
"""The types whose jobs are in each queue."""


class Depot:
    """The store and what is in it.

    Args:
        folder: where it is.
    """

    def __init__(self, folder: Path) -> None:
        place = folder / "depot.db"
        self.rw = Runwick("depot", store=f"sqlite:///{place}")
        self.rw.job(NAMES["own"], queue="own", per_resource=(PerResource(lambda job: KEY, 9),))(Pack)
        self.rw.job(NAMES["other"], queue="other")(Ship)
        self.rw.migrate()
        self.jobs = {"own": dict[JobState, str](), "other": dict[JobState, str]()}
        """By queue and state, their ids."""
        self.attempts = {"own": dict[JobState, str](), "other": dict[JobState, str]()}
        """Likewise of those that began."""
        self._worker = self.rw.ids.ordered()
        self._seed()
        self._rows = sqlite3.connect(place, isolation_level=None)
        self._read: tuple[int, Rows] | None = None
        found = self._rows.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        self._tables = sorted(name for (name,) in found)

    def close(self) -> None:
        self._rows.close()
        self.rw.close()

    def stands(self) -> Rows:
        """Every row of the store, by table. They are read again only when somebody has written since."""
        ((version,),) = self._rows.execute("PRAGMA data_version")
        if self._read is None or self._read[0] != version:
            rows = {name: self._rows.execute(f'SELECT * FROM "{name}"').fetchall() for name in self._tables}
            self._read = version, rows
        return self._read[1]

    @contextlib.contextmanager
    def put_back(self) -> Iterator[Callable[[], None]]:
        """Afterwards the store is as it was, and whenever what this answers is called."""
        with contextlib.closing(sqlite3.connect(":memory:")) as kept:
            self._rows.backup(kept)

            def back() -> None:
                kept.backup(self._rows)
                self._read = None  # what this connection writes itself raises no version

            try:
                yield back
            finally:
                back()

    def pause(self) -> None:
        """Pause the own queue."""
        assert self.rw.queues.pause("own", OPERATOR, expected_revision=self.queue_revision).succeeded

    @property
    def queue_revision(self) -> int:
        """Of the own queue, as it stands."""
        return next(each.revision for each in self.rw.queues.list() if each.queue == "own")

    @property
    def scope_revision(self) -> int:
        """Of the scope of `KEY`."""
        return next(each.revision for each in self.rw.capacity.scopes("resource") if each.key == KEY)

    def target(self, queue: str, state: JobState) -> str:
        """A job as it stands, as the forms of the pages write it."""
        job = self.rw.get(self.jobs[queue][state])
        return f"{job.job_id}:{job.generation}:{job.revision}"

    def _seed(self) -> None:
        failed = Outcome(
            OutcomeKind.FAILED_PERMANENTLY,
            "no_stock",
            error=ErrorDetail("ValueError", PRIVATE, PRIVATE),
            black_box=BlackBox(PRIVATE, PRIVATE),
        )
        succeeded = Outcome(OutcomeKind.SUCCEEDED, result=f'"{PRIVATE}"'.encode())
        running = []
        for queue in NAMES:
            self._settle(self._began(queue, JobState.FAILED), failed, JobState.FAILED)
            self._settle(self._began(queue, JobState.SUCCEEDED), succeeded, JobState.SUCCEEDED)
            running.append(self._began(queue, JobState.RUNNING))
            self._dispatch(queue, JobState.PENDING)
        self._renew(running)
        targets = [self.rw.get(self.jobs[queue][JobState.RUNNING]).target for queue in NAMES]
        for target in targets:
            assert self.rw.controls.look(target, OPERATOR).succeeded
        self._renew(running, [StackAnswer(attempt.attempt_id, PRIVATE) for attempt in running])

    def _dispatch(self, queue: str, state: JobState) -> None:
        job = Pack(PRIVATE) if queue == "own" else Ship(PRIVATE)
        self.jobs[queue][state] = self.rw.dispatch(job, tenant=TENANTS[queue]).job_id

    def _began(self, queue: str, state: JobState) -> Attempt:
        self._dispatch(queue, state)
        store = self.rw.store
        plan = ClaimPlan(
            application=self.rw.application,
            worker=self._worker,
            claim_token=self.rw.ids.secret(),
            turns=[LaneTurn(lane, 1) for lane in lanes_of(sorted(NAMES))],
            kinds=frozenset(self.rw.catalog.jobs),
            free=1,
            ahead=0,
            payload_bytes=1024 * 1024,
            lease_ms=_LEASE_MS,
        )
        [claimed] = store.run(store.claim(plan)).attempts
        attempt = store.run(store.begin(claimed)).attempt
        assert attempt is not None
        self.attempts[queue][state] = id_text(attempt.attempt_id)
        return attempt

    def _settle(self, attempt: Attempt, outcome: Outcome, state: SettledState) -> None:
        store = self.rw.store
        assert store.run(store.settle([Settlement(attempt, outcome, state, outcome.code)])) == [Answer.DONE]

    def _renew(self, running: Sequence[Attempt], stacks: Sequence[StackAnswer] = ()) -> None:
        """What the worker tells of what it runs."""
        now_ms = self.rw.store.now_ms()
        presence = WorkerPresence(
            worker=self._worker,
            application=self.rw.application,
            host="worker-1",
            process=7,
            queues=sorted(NAMES),
            executors=len(running),
        )
        executors = [
            ExecutorActivity(
                number=number,
                pool="main",
                phase="handle",
                job_id=attempt.job_id,
                attempt_id=attempt.attempt_id,
                name=attempt.kind.name,
                begun_at_ms=now_ms,
            )
            for number, attempt in enumerate(running)
        ]
        marks = [Mark(attempt.job, attempt.claim_token, now_ms) for attempt in running]
        report = Report(presence=presence, executors=executors, marks=marks, stacks=stacks)
        leases = [Held(attempt.job, attempt.claim_token) for attempt in running]
        self.rw.store.run(self.rw.store.renew(report, leases, _LEASE_MS, _LEASE_MS))
