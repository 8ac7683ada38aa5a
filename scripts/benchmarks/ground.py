"""A fresh store for one measurement, filled the same way each time, gone afterwards."""

import contextlib
import dataclasses
import datetime
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from runwick import DispatchOptions, Job, Receipt, Runwick
from runwick.contracts.attempts import ClaimPlan
from runwick.contracts.dispatching import BATCH_MAX_ITEMS, COMMAND_LIFETIME_MAX_MS, Command
from runwick.contracts.identity import job_of_operation
from runwick.dispatch.prepare import Validity, prepare
from runwick.runtime.ambient import SystemIds
from scripts.benchmarks.application import NAME, application

CLAIM = 128
"""Attempts per claim and settlements per batch of the floors: the most that the worker puts into one."""
LEASE_MS = 60_000

_ids = SystemIds()


@dataclasses.dataclass(frozen=True)
class Ground:
    """The store of one measurement as this process has it open, and where a supervisor finds it."""

    url: str
    rw: Runwick

    def fill(self, job: Job, number: int) -> None:
        """Dispatch `job` `number` times, in batches."""
        for done in range(0, number, BATCH_MAX_ITEMS):
            self.rw.dispatch_many([job] * min(BATCH_MAX_ITEMS, number - done))

    def claim_plan(self, record: type[Job], *, attempts: int = CLAIM, lease_ms: int = LEASE_MS) -> ClaimPlan:
        """What a lone worker asks for that takes jobs of this type only."""
        entry = self.rw.catalog.by_record[record]
        return ClaimPlan(
            application=NAME,
            worker=_ids.ordered(),
            claim_token=_ids.secret(),
            lanes=[entry.lane],
            kinds=frozenset({entry.kind}),
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


def ready_commands(rw: Runwick, job: Job, number: int) -> list[Command]:
    """The commands of `number` dispatches of `job`, checked and serialised, each with ids of its own."""
    validity = Validity(rw.store.now_ms() + COMMAND_LIFETIME_MAX_MS)
    command = prepare(rw.catalog, job, DispatchOptions(), _ids, validity)
    operations = [_ids.ordered() for _ in range(number)]
    return [
        msgspec.structs.replace(command, operation_id=operation, job_id=job_of_operation(operation))
        for operation in operations
    ]


@contextlib.contextmanager
def fresh_ground(folder: Path) -> Iterator[Ground]:
    """A migrated, empty SQLite store in a directory of its own below `folder`."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="bench-") as own:
        url = f"sqlite:///{own}/bench.db"
        rw = application(url)
        rw.migrate()
        try:
            yield Ground(url, rw)
        finally:
            rw.close()
