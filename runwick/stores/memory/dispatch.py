"""Dispatch: jobs are kept, all of a batch or none; where a uniqueness key names a job that is there, that one is the
answer. Limits that a new job needs and that are not there yet come to be with it.

What was applied before is answered again, whatever its deadline and its application's mode have become. What somebody
dispatches by hand is kept as a command as well.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.administration import Capability
from runwick.contracts.ambient import Clock
from runwick.contracts.dispatching import Command, Receipt, ReceiptDisposition
from runwick.contracts.errors import ItemFailure
from runwick.contracts.history import EventKind
from runwick.contracts.identity import job_of_operation
from runwick.contracts.revealing import AuditNote
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.policy import uniqueness
from runwick.stores import refusals
from runwick.stores.controls import command_conflict
from runwick.stores.memory import by_hand
from runwick.stores.memory.rows import JobRow, Reused, WindowKey
from runwick.stores.memory.tables import Tables, act

PROFILE: Final = "memory"
"""What a receipt confirms here: the job lives as long as the process."""


def dispatch(
    tables: Tables, commands: Sequence[Command], clock: Clock, *, continue_on_conflict: bool, note: AuditNote | None
) -> Act[list[Receipt | ItemFailure]]:
    """Create these jobs, all or none, or find the ones that uniqueness keys name; answers in input order."""
    return act("dispatch", lambda: _dispatch(tables, commands, clock.now_ms(), continue_on_conflict, note))


def _dispatch(
    tables: Tables, commands: Sequence[Command], now_ms: int, continue_on_conflict: bool, note: AuditNote | None
) -> list[Receipt | ItemFailure]:
    if note is None:
        return _dispatch_all(tables, commands, now_ms, continue_on_conflict)
    (command,) = commands
    _check_meant(tables, command)
    before = by_hand.dispatched_before(tables, command, note)
    if before is not None:
        return [before]
    if _was_applied(tables, command):
        raise command_conflict(command)
    (answer,) = _dispatch_all(tables, commands, now_ms, continue_on_conflict)
    if isinstance(answer, Receipt):
        by_hand.keep(tables, command, note, answer, now_ms)
    return [answer]


def _dispatch_all(
    tables: Tables, commands: Sequence[Command], now_ms: int, continue_on_conflict: bool
) -> list[Receipt | ItemFailure]:
    _check(tables, commands, now_ms)
    first = {command.job_id: ordinal for ordinal, command in reversed([*enumerate(commands)])}
    items = [
        uniqueness.item_of(ordinal, command, command.policy)
        for ordinal, command in enumerate(commands)
        if first[command.job_id] == ordinal and not _was_applied(tables, command)
    ]
    answers = uniqueness.resolve(
        items,
        _active_holders(tables, items),
        _window_holders(tables, items),
        now_ms,
        continue_on_conflict=continue_on_conflict,
    )
    failures = {}
    for answer in answers:
        if isinstance(answer, uniqueness.Conflict):
            failures[answer.item.command.job_id] = uniqueness.conflict_failure(answer)
        else:
            _apply(tables, answer, now_ms)
    return [
        msgspec.structs.replace(failures[command.job_id], ordinal=ordinal)
        if command.job_id in failures
        else _receipt(tables, command.job_id, command.operation_id)
        for ordinal, command in enumerate(commands)
    ]


def _was_applied(tables: Tables, command: Command) -> bool:
    return command.job_id in tables.jobs_by_id or command.operation_id in tables.reused


def _active_holders(tables: Tables, items: Sequence[uniqueness.Item]) -> dict[bytes, uniqueness.ActiveHolder]:
    holders = {}
    for item in items:
        if item.active is not None and (job := tables.active.get(item.active)) is not None:
            command = tables.rows[job].command
            holders[item.active] = uniqueness.ActiveHolder(command.job_id, command.policy)
    return holders


def _window_holders(tables: Tables, items: Sequence[uniqueness.Item]) -> dict[bytes, uniqueness.WindowHolder]:
    holders = {}
    for item in items:
        if item.window is not None and (kept := tables.window_keys.get(item.window)) is not None:
            policy = tables.rows[tables.jobs_by_id[kept.job_id]].command.policy
            holders[item.window] = uniqueness.WindowHolder(kept.job_id, policy, kept.fingerprint, kept.until_ms)
    return holders


def _apply(tables: Tables, answer: uniqueness.Create | uniqueness.Reuse, now_ms: int) -> None:
    item, command = answer.item, answer.item.command
    if isinstance(answer, uniqueness.Create):
        _create(tables, command, now_ms)
        job_id, links = command.job_id, True
    else:
        job_id, links = answer.job, answer.links
        tables.reused[command.operation_id] = Reused(
            command.application, job_id, answer.match, answer.drift, command.deadline_ms
        )
    if links and item.window is not None and command.fingerprint is not None:
        until_ms = uniqueness.window_until_ms(item, now_ms)
        tables.window_keys[item.window] = WindowKey(command.application, job_id, command.fingerprint, until_ms)


def _create(tables: Tables, command: Command, now_ms: int) -> None:
    tables.know(command.application)
    tables.know_queue(command.application, command.lane.queue)
    tables.limits.declare(command.application, command.scopes)
    tables.limits.declare_rates(command.application, command.rates)
    expires_at_ms = command.expiry_ms(now_ms)
    row = JobRow(
        job=len(tables.rows) + 1,
        command=command,
        created_at_ms=now_ms,
        due_at_ms=command.due_at_ms(now_ms),
        expires_at_ms=expires_at_ms,
        lives_ms=None if expires_at_ms is None else expires_at_ms - now_ms,
    )
    tables.rows[row.job] = row
    tables.jobs_by_id[command.job_id] = row.job
    if row.active is not None:
        tables.active[row.active] = row.job
    tables.tell(row, EventKind.DISPATCHED, now_ms)
    tables.wait(row, JobState.PENDING)


def _check(tables: Tables, commands: Sequence[Command], now_ms: int) -> None:
    """Refuse what may not be applied now, unless it was before. What was sent before, or twice in this batch, must come
    from the same operation."""
    operations = {command.job_id: command.operation_id for command in reversed(commands)}
    for command in commands:
        _check_meant(tables, command)
        job = tables.jobs_by_id.get(command.job_id)
        created_by = operations[command.job_id] if job is None else tables.rows[job].command.operation_id
        if created_by != command.operation_id:
            raise refusals.operation_conflict(command, created_by)
        refusal = tables.refusal("dispatch", command.application) or refusals.too_late(command, now_ms)
        if refusal is not None and not _was_applied(tables, command):
            raise refusal
    for command in commands:
        if command.rates and not _was_applied(tables, command) and not _may_have_rates(tables, command.application):
            raise refusals.rate_admission_not_active(command.application)


def _check_meant(tables: Tables, command: Command) -> None:
    if command.store_id not in (None, tables.store_id):
        raise refusals.identity_mismatch(command.store_id, tables.store_id)


def _may_have_rates(tables: Tables, application: str) -> bool:
    stands = tables.applications.get(application)
    return stands is None or Capability.RATE_ADMISSION.value in stands.capabilities


def resolve(tables: Tables, application: str, operation_id: bytes) -> Act[Receipt | None]:
    """The receipt of an operation that was applied; None when it was not, so far."""
    return act("resolve", lambda: _resolve(tables, application, operation_id), reads_only=True)


def _resolve(tables: Tables, application: str, operation_id: bytes) -> Receipt | None:
    reused = tables.reused.get(operation_id)
    job_id = job_of_operation(operation_id)
    if reused is not None:
        return _receipt(tables, job_id, operation_id) if reused.application == application else None
    job = tables.jobs_by_id.get(job_id)
    if job is None:
        return None
    command = tables.rows[job].command
    if (command.application, command.operation_id) != (application, operation_id):
        return None
    return _receipt(tables, job_id, operation_id)


def _receipt(tables: Tables, job_id: bytes, operation_id: bytes) -> Receipt:
    """Of an operation that was applied."""
    reused = tables.reused.get(operation_id)
    if reused is None:
        return Receipt(job_id, operation_id, ReceiptDisposition.CREATED, PROFILE)
    return Receipt(
        reused.job_id, operation_id, ReceiptDisposition.REUSED, PROFILE, reused.match, policy_drift=reused.drift
    )
