"""What a change is about, as it was last seen: said on the command line, or else read now, which people are told."""

from typing import TYPE_CHECKING

from runwick.cli.answers import Seen
from runwick.cli.failures import Rejected, error_with
from runwick.contracts.controls import JobTarget
from runwick.contracts.limits import LimitKind
from runwick.management.bodies import ControlBody, JobBody, QueueBody, ScopeBody

if TYPE_CHECKING:
    from runwick.cli.at_desk import Operation


async def job_target(operation: "Operation", job_id: str) -> JobTarget:
    """The job, as the caller saw it.

    Raises:
        RunwickError: it is read and there is none.
    """
    generation, revision = operation.expected.generation, operation.expected.revision
    if generation is None or revision is None:
        job = await operation.desk.job(job_id)
        generation = job.generation if generation is None else generation
        revision = job.revision if revision is None else revision
        operation.teller.note(f"used generation {generation}, revision {revision}")
    return JobTarget.of(job_id, generation, revision)


async def queue_revision(operation: "Operation", queue: str) -> int:
    """The revision of a queue, as the caller saw it; raising as `job_target`."""
    if (said := operation.expected.revision) is not None:
        return said
    for each in (await operation.desk.queues()).queues:
        if each.queue == queue:
            operation.teller.note(f"used revision {each.revision}")
            return each.revision
    raise Rejected(error_with("not_found", f"there is no queue {queue!r} here, or you may not see it"))


async def scope_revision(operation: "Operation", kind: LimitKind, key: str) -> int:
    """The revision of a scope, as the caller saw it; raising as `job_target`."""
    if (said := operation.expected.revision) is not None:
        return said
    cursor = None
    while True:
        page = await operation.desk.scopes(kind, cursor, 100)
        for each in page.scopes:
            if each.key == key:
                operation.teller.note(f"used revision {each.revision}")
                return each.revision
        cursor = page.cursor
        if cursor is None:
            message = f"there is no scope {kind.value} {key!r} here, or you may not see it"
            raise Rejected(error_with("not_found", message))


def job_revisions(*jobs: JobBody | ControlBody) -> dict[str, Seen]:
    """How jobs stand, for the next change."""
    return {f"job:{each.job_id}": Seen(each.generation, each.revision) for each in jobs if each.revision is not None}


def queue_revisions(*queues: QueueBody) -> dict[str, Seen]:
    """How queues stand, for the next change."""
    return {f"queue:{each.queue}": Seen(revision=each.revision) for each in queues}


def scope_revisions(*scopes: ScopeBody) -> dict[str, Seen]:
    """How scopes stand, for the next change."""
    return {f"scope:{each.kind}/{each.key}": Seen(revision=each.revision) for each in scopes}
