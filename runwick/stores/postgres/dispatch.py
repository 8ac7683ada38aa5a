"""Dispatch: jobs become durable, all of a batch or none, in one statement; a job by itself by a narrow one.

A job's row is the receipt of its operation: sent again, an operation finds it and answers the same. Batches with keys,
with limits that are not known here, or with a note for the audit trail go the way of `keyed`.
"""

from collections.abc import Sequence

import msgspec

from runwick.contracts.dispatching import Command, DuplicateMatch, Receipt, ReceiptDisposition
from runwick.contracts.errors import ItemFailure, OutcomeUnknown
from runwick.contracts.identity import job_of_operation
from runwick.contracts.limits import LimitKind
from runwick.contracts.revealing import AuditNote
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.postgres import keyed, packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.commands import job_columns, job_facts, late_columns, wanted
from runwick.stores.steps import Step, Steps, Trial


def dispatch(
    bound: Bound, commands: Sequence[Command], *, continue_on_conflict: bool, note: AuditNote | None
) -> Act[list[Receipt | ItemFailure]]:
    """Create these jobs, all or none; receipts in input order.

    Raises (when run):
        StoreHistoryBroken: one is meant for another store.
        StoreError: a job's id was used by another operation (code ``operation_conflict``), or the application may not
            have rate windows (code ``rate_admission_not_active``).
        CommandExpired: one comes after its deadline.
        OutcomeUnknown: one comes so late that nobody knows (code ``expired_unknown``).
        UniquenessConflict: of the first item that meets one, unless `continue_on_conflict`.
    """
    return MakesDue("dispatch", lambda due: _dispatch(bound, commands, due, continue_on_conflict, note))


def _dispatch(
    bound: Bound, commands: Sequence[Command], due: Due, continue_on_conflict: bool, note: AuditNote | None
) -> Steps[list[Receipt | ItemFailure]]:
    distinct = list(_distinct(bound, commands).values())
    if note is None and all(_is_plain(bound, command) for command in distinct):
        if len(distinct) != 1 or not (yield from _create_one(bound, distinct[0], due)):
            yield from _create(bound, distinct, due)
        return [_receipt(bound, command) for command in commands]
    answers = yield from keyed.dispatch(bound, commands, due, continue_on_conflict=continue_on_conflict, note=note)
    return [
        msgspec.structs.replace(answer, ordinal=ordinal) if isinstance(answer, ItemFailure) else answer
        for ordinal, answer in enumerate(answers[command.job_id] for command in commands)
    ]


def _is_plain(bound: Bound, command: Command) -> bool:
    """Whether its job's row is all that there is to write."""
    if command.active_key is not None or command.window_key is not None or command.rates:
        return False
    known = bound.names.scopes
    return all(
        need.kind is not LimitKind.RESOURCE and (command.application, need.kind, need.key) in known
        for need in command.scopes
    )


def _create_one(bound: Bound, command: Command, due: Due) -> Steps[bool]:
    """Create a job; False if it is there already or comes late, and nothing was done."""
    numbers = bound.names.of_job(command.application, command.lane, command.kind, command.policy)
    if numbers is None:
        yield from _name(bound, [command])
        return (yield from _create_one(bound, command, due))
    application, lane, kind, policy = numbers
    tells = bound.may_tell()
    parameters = (
        *bound.gate(),
        packed.number(application),
        packed.Id(command.job_id),
        packed.Id(command.operation_id),
        packed.number(lane),
        packed.number(kind),
        packed.number(policy),
        *job_facts(command),
        packed.flag(tells),
    )
    if not (yield Trial("dispatch_plain", parameters)):
        return False
    due.is_told = tells
    due.add(application)
    return True


def _create(bound: Bound, commands: Sequence[Command], due: Due) -> Steps[None]:
    yield from _name(bound, commands)
    columns = _columns(bound, commands)
    tells = bound.may_tell()
    while late := _late(commands, (yield Step("dispatch", (*bound.gate(), *columns, packed.flag(tells))))):
        # Was it sent before, and is that sending at it in this very moment? Only then does this come back.
        yield Step("dispatch_late", late_columns(late))
    due.is_told = tells
    due.update(bound.names.applications[command.application] for command in commands)


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
        yield from bound.names.make(wanted(application, own), "dispatch")


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
        *job_columns(commands),
    )


def resolve(bound: Bound, application: str, operation_id: bytes) -> Act[Receipt | None]:
    """The receipt of an operation that was applied; None when it was not, so far."""
    return Act("resolve", lambda: _resolve(bound, application, operation_id), reads_only=True)


def _resolve(bound: Bound, application: str, operation_id: bytes) -> Steps[Receipt | None]:
    job_id = job_of_operation(operation_id)
    parameters = (*bound.reading(), application, packed.Id(operation_id), packed.Id(job_id))
    rows = yield Step("resolved", parameters)
    if not rows:
        return None
    ((found, match, drift),) = rows
    if found is None:
        return Receipt(job_id, operation_id, ReceiptDisposition.CREATED, bound.profile)
    return keyed.reused(bound, operation_id, found, DuplicateMatch(match), drift=drift)


def _receipt(bound: Bound, command: Command) -> Receipt:
    return Receipt(command.job_id, command.operation_id, ReceiptDisposition.CREATED, bound.profile)
