"""A fresh store for one measurement, filled the same way each time, gone afterwards."""

import contextlib
import dataclasses
import datetime
import itertools
from collections.abc import Iterator, Sequence

import msgspec

from runwick import DispatchOptions, Job, Receipt, Runwick
from runwick.contracts.attempts import Attempt, ClaimPlan, Lane, LaneTurn
from runwick.contracts.dispatching import BATCH_MAX_ITEMS, COMMAND_LIFETIME_MAX_MS, Command
from runwick.contracts.identity import job_of_operation
from runwick.contracts.outcomes import Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.contracts.usage import Usage
from runwick.dispatch.prepare import Validity, prepare
from runwick.runtime.ambient import SystemIds
from scripts.benchmarks.application import NAME, application
from scripts.benchmarks.sites import Site

CLAIM = 128
"""Attempts per claim and settlements per batch of the floors: the most that the worker puts into one."""
LEASE_MS = 60_000

_ids = SystemIds()

_OUTCOME = Outcome(
    OutcomeKind.SUCCEEDED,
    usage=Usage(
        wall_us=25,
        cpu_user_us=20,
        cpu_system_us=5,
        cpu_children_us=0,
        rss_peak_bytes=32_000_000,
        rss_end_bytes=32_000_000,
        faults_minor=1,
        faults_major=0,
        switches_voluntary=0,
        switches_involuntary=0,
    ),
    begun_at_ms=1_750_000_000_000,
)
"""What a real run of `Nothing` leaves behind, so that rows have the same size without one."""


@dataclasses.dataclass(frozen=True)
class Ground:
    """The store of one measurement as this process has it open, and where a supervisor finds it."""

    url: str
    rw: Runwick

    @property
    def is_postgres(self) -> bool:
        """Whether the store is a database of a server, which psycopg reaches by the same URL."""
        return self.url.startswith("postgresql:")

    @property
    def is_redis(self) -> bool:
        """Whether the store is a database of a Redis server, which redis-py reaches by `client_url`."""
        return self.url.startswith("redis")

    @property
    def client_url(self) -> str:
        """The URL of a store in Redis as redis-py reads it."""
        return self.url.removeprefix("redis+")

    @property
    def file(self) -> str:
        """The path of a store that is a file."""
        return self.url.removeprefix("sqlite:///")

    def fill(self, job: Job, number: int) -> None:
        """Dispatch `job` `number` times, in batches."""
        for done in range(0, number, BATCH_MAX_ITEMS):
            self.rw.dispatch_many([job] * min(BATCH_MAX_ITEMS, number - done))

    def claim_plan(
        self,
        *records: type[Job],
        turns: Sequence[LaneTurn] | None = None,
        attempts: int = CLAIM,
        lease_ms: int = LEASE_MS,
    ) -> ClaimPlan:
        """What a lone worker asks for that takes jobs of these types only.

        Args:
            records: the types.
            turns: None takes all from the lane of the first type.
            attempts: how many.
            lease_ms: for how long.
        """
        entries = [self.rw.catalog.by_record[record] for record in records]
        return ClaimPlan(
            application=NAME,
            worker=_ids.ordered(),
            claim_token=_ids.secret(),
            turns=[LaneTurn(entries[0].lane, attempts)] if turns is None else turns,
            kinds=frozenset(entry.kind for entry in entries),
            free=attempts,
            ahead=0,
            payload_bytes=4 * 1024 * 1024,
            lease_ms=lease_ms,
        )

    def result(self, receipt: Receipt) -> int:
        """The number that the job's handler returns, as soon as it is there."""
        return self.rw.wait(receipt, timeout=datetime.timedelta(seconds=30)).result(int)


def claimed_again(plan: ClaimPlan) -> ClaimPlan:
    """The same plan as a new call: each call has a token of its own."""
    return msgspec.structs.replace(plan, claim_token=_ids.secret())


def evenly(lanes: Sequence[Lane], attempts: int) -> list[LaneTurn]:
    """The turns of a claim to which each of these lanes gives alike."""
    return [LaneTurn(lane, len(range(place, attempts, len(lanes)))) for place, lane in enumerate(lanes)]


def ready_commands(rw: Runwick, job: Job, number: int, lanes: Sequence[Lane] = ()) -> list[Command]:
    """The commands of `number` dispatches of `job`, checked and serialised, each with ids of its own: for its own lane,
    or for `lanes` in turn."""
    validity = Validity(rw.store.now_ms() + COMMAND_LIFETIME_MAX_MS)
    command = prepare(rw.catalog, job, DispatchOptions(), _ids, validity)
    places = itertools.cycle(lanes or (command.lane,))
    operations = [_ids.ordered() for _ in range(number)]
    return [
        msgspec.structs.replace(command, operation_id=operation, job_id=job_of_operation(operation), lane=lane)
        for operation, lane in zip(operations, places, strict=False)
    ]


def succeeded(attempts: Sequence[Attempt]) -> list[Settlement]:
    """How attempts of jobs end that do nothing."""
    return [Settlement(attempt, _OUTCOME, JobState.SUCCEEDED) for attempt in attempts]


def failed(attempts: Sequence[Attempt]) -> list[Settlement]:
    """How attempts end that fail for good."""
    outcome = msgspec.structs.replace(_OUTCOME, kind=OutcomeKind.FAILED, code="handler_failed")
    return [Settlement(attempt, outcome, JobState.FAILED, code="executions_exhausted") for attempt in attempts]


@contextlib.contextmanager
def fresh_ground(site: Site) -> Iterator[Ground]:
    """A migrated, empty store."""
    with site.store() as url:
        rw = application(url)
        rw.migrate()
        rw.check()  # opens it, so that no measurement contains that
        try:
            yield Ground(url, rw)
        finally:
            rw.close()
