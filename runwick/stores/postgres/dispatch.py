"""Dispatch: jobs become durable, all of a batch or none, in one statement.

A job's row is the receipt of its operation: sent again, an operation finds it and answers the same.
"""

from collections.abc import Sequence

from runwick.contracts.dispatching import Command, Receipt, ReceiptDisposition
from runwick.contracts.errors import OutcomeUnknown
from runwick.contracts.identity import job_of_operation
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Step, Steps


def dispatch(bound: Bound, commands: Sequence[Command]) -> Act[list[Receipt]]:
    """Create these jobs, all or none; receipts in input order.

    Raises (when run):
        StoreHistoryBroken: one is meant for another store.
        StoreError: a job's id was used by another operation (code ``operation_conflict``).
        CommandExpired: one comes after its deadline.
        OutcomeUnknown: one comes so late that nobody knows (code ``expired_unknown``).
    """
    return MakesDue("dispatch", lambda due: _dispatch(bound, commands, due))


def _dispatch(bound: Bound, commands: Sequence[Command], due: Due) -> Steps[list[Receipt]]:
    distinct = list(_distinct(bound, commands).values())
    yield from _name(bound, distinct)
    columns = _columns(bound, distinct)
    tells = bound.may_tell()
    while late := _late(distinct, (yield Step("dispatch", (*bound.gate(), *columns, packed.flag(tells))))):
        # Was it sent before, and is that sending at it in this very moment? Only then does this come back.
        commands_late, by_ms = zip(*late, strict=True)
        parameters = (
            packed.ids([command.job_id for command in commands_late]),
            packed.ids([command.operation_id for command in commands_late]),
            packed.numbers(by_ms),
        )
        yield Step("dispatch_late", parameters)
    due.is_told = tells
    due.update(bound.names.applications[command.application] for command in distinct)
    return [_receipt(bound, command.job_id, command.operation_id) for command in commands]


def _late(commands: Sequence[Command], refused: Sequence[tuple[int, bytes | None, int]]) -> list[tuple[Command, int]]:
    """Those that came after their deadline and are not there, and by how many milliseconds each is late.

    Raises:
        StoreError, OutcomeUnknown: as `dispatch`, where nothing has to be waited for.
    """
    late = []
    for place, created_by, now_ms in refused:
        command = commands[place - 1]
        if created_by is not None:
            raise refusals.operation_conflict(command, created_by)
        if isinstance(too_late := refusals.too_late(command, now_ms), OutcomeUnknown):
            raise too_late
        late.append((command, now_ms - command.deadline_ms))
    return late


def _distinct(bound: Bound, commands: Sequence[Command]) -> dict[bytes, Command]:
    """The commands, each job once; what comes twice must come from the same operation."""
    by_job: dict[bytes, Command] = {}
    for command in commands:
        if command.store_id not in (None, bound.store_id):
            raise refusals.identity_mismatch(command.store_id, bound.store_id)
        first = by_job.setdefault(command.job_id, command)
        if first.operation_id != command.operation_id:
            raise refusals.operation_conflict(command, first.operation_id)
    return by_job


def _name(bound: Bound, commands: Sequence[Command]) -> Steps[None]:
    """See that all names in these commands have numbers."""
    for application in dict.fromkeys(command.application for command in commands):
        own = [command for command in commands if command.application == application]
        lanes = tuple(dict.fromkeys(command.lane for command in own))
        kinds = tuple(dict.fromkeys(command.kind for command in own))
        policies = tuple(dict.fromkeys(command.policy for command in own))
        yield from bound.names.make(Wanted(application, lanes, kinds, policies), "dispatch")


def _columns(bound: Bound, commands: Sequence[Command]) -> tuple[packed.Packed, ...]:
    names = bound.names
    applications = [names.applications[command.application] for command in commands]
    own = list(zip(applications, commands, strict=True))
    return (
        packed.ids([command.job_id for command in commands]),
        packed.ids([command.operation_id for command in commands]),
        packed.numbers(applications),
        packed.numbers([names.lanes[application, command.lane] for application, command in own]),
        packed.numbers([names.kinds[application, command.kind] for application, command in own]),
        packed.numbers([names.policies[command.policy] for command in commands]),
        packed.numbers([command.policy.max_executions for command in commands]),
        packed.numbers([command.deadline_ms for command in commands]),
        packed.numbers([command.not_before_ms for command in commands]),
        packed.numbers([command.delay_ms for command in commands]),
        packed.numbers([command.expires_at_ms for command in commands]),
        packed.numbers([command.expires_in_ms for command in commands]),
        packed.texts([command.tenant for command in commands]),
        packed.texts([command.traceparent for command in commands]),
        packed.texts([command.tracestate for command in commands]),
        packed.blobs([command.metadata for command in commands]),
        packed.blobs([command.payload for command in commands]),
    )


def resolve(bound: Bound, application: str, operation_id: bytes) -> Act[Receipt | None]:
    """The receipt of an operation that was applied; None when it was not, so far."""
    return Act("resolve", lambda: _resolve(bound, application, operation_id), reads_only=True)


def _resolve(bound: Bound, application: str, operation_id: bytes) -> Steps[Receipt | None]:
    job_id = job_of_operation(operation_id)
    rows = yield Step("resolved", (*bound.reading(), application, packed.Id(job_id)))
    return _receipt(bound, job_id, operation_id) if rows == [(operation_id,)] else None


def _receipt(bound: Bound, job_id: bytes, operation_id: bytes) -> Receipt:
    return Receipt(job_id, operation_id, ReceiptDisposition.CREATED, bound.profile)
