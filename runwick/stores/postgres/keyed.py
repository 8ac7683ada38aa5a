"""Dispatch with uniqueness keys, limits or a note: read who has the keys, decide, and write in one statement.

::

    keyed ──▶ applied before · late · `runwick.policy.uniqueness` decides ──▶ dispatch_keyed ──▶ receipts
      ▲                                                                            │
      └──────── run again: somebody else came first, which an index told ◀─────────┘

What is not committed yet nobody can see, so nothing that was read proves that a key is free: the statement that writes
proves it, at the index. It waits there for who is just writing the same key, and goes on if that is rolled back.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runwick.contracts.dispatching import Command, DuplicateMatch, Receipt, ReceiptDisposition
from runwick.contracts.errors import ItemFailure, OutcomeUnknown
from runwick.contracts.limits import LimitKind
from runwick.contracts.revealing import AuditNote
from runwick.policy import uniqueness
from runwick.policy.uniqueness import ActiveHolder, Answer, Conflict, Create, Item, Reuse, WindowHolder
from runwick.stores import refusals
from runwick.stores.postgres import by_hand, packed
from runwick.stores.postgres.bound import Bound, Due
from runwick.stores.postgres.commands import (
    job_columns,
    late_columns,
    limits_columns,
    needs_columns,
    reuse_columns,
    wanted,
    window_key_columns,
)
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Preparation, Steps, Trial


class _Found(NamedTuple):
    """What stands in the store for one dispatch: a row of ``keyed.sql``."""

    now_ms: int
    may_have_rates: bool
    created_by: bytes | None
    reused: bytes | None
    match: str | None
    drift: bool | None
    active_job: bytes | None
    active_policy: int | None
    window_job: bytes | None
    window_policy: int | None
    fingerprint: bytes | None
    until_ms: int | None


def dispatch(
    bound: Bound, commands: Sequence[Command], due: Due, *, continue_on_conflict: bool, note: AuditNote | None
) -> Steps[dict[bytes, Receipt | ItemFailure]]:
    """Create these jobs of one application or find existing ones, all or none; answers by the ids of the jobs that they
    would create. What comes twice counts once.

    Raises:
        As `runwick.stores.postgres.dispatch.dispatch`.
    """
    application = commands[0].application
    number = yield from bound.names.make(Wanted(application), "dispatch")
    if note is not None:
        before = yield from by_hand.dispatched_before(bound, number, commands[0], note)
        if before is not None:
            return {commands[0].job_id: before}
    yield from bound.names.find(wanted(application, commands))
    items = {item.command.job_id: item for item in reversed([*_items(bound, commands)])}
    ordered = sorted(items.values(), key=lambda item: item.ordinal)
    while True:
        rows = yield Preparation("keyed", (*bound.gate(), packed.number(number), *_keys(ordered)))
        found = [_Found(*row) for row in rows]
        receipts, fresh = _applied_before(bound, ordered, found)
        if note is not None and receipts:
            return {commands[0].job_id: (yield from by_hand.applied_meanwhile(bound, number, commands[0], note))}
        if late := _refuse(fresh):
            yield Preparation("dispatch_late_keyed", late_columns(late))
        answers = _decide(fresh, continue_on_conflict=continue_on_conflict)
        creates = [answer.item.command for answer in answers if isinstance(answer, Create)]
        if all(isinstance(answer, Conflict) for answer in answers):
            break
        yield from bound.names.make(wanted(application, creates), "dispatch")
        tells = bound.may_tell()
        by_whom = by_hand.kept_columns(commands[0], note, _answered(bound, answers[0]))
        parameters = (*_write(bound, number, answers, found[0].now_ms), packed.flag(tells), *by_whom)
        ((came_late,),) = yield Trial("dispatch_keyed", parameters)
        if not came_late:
            _know(bound, creates)
            if creates:
                due.is_told = tells
                due.add(number)
            break
    return receipts | {answer.item.command.job_id: _answered(bound, answer) for answer in answers}


def reused(bound: Bound, operation_id: bytes, job: bytes, match: DuplicateMatch, *, drift: bool) -> Receipt:
    """The receipt of a dispatch that found an existing job."""
    return Receipt(job, operation_id, ReceiptDisposition.REUSED, bound.profile, match, policy_drift=drift)


def _items(bound: Bound, commands: Sequence[Command]) -> Iterable[Item]:
    """Where a policy has no number yet, it is like no other job's."""
    numbers = bound.names.policies
    for ordinal, command in enumerate(commands):
        yield uniqueness.item_of(ordinal, command, numbers.get(command.policy, command.policy))


def _keys(items: Sequence[Item]) -> tuple[packed.Packed, ...]:
    return (
        packed.ids([item.command.job_id for item in items]),
        packed.ids([item.command.operation_id for item in items]),
        packed.optional_ids([item.active for item in items]),
        packed.optional_ids([item.window for item in items]),
    )


def _applied_before(
    bound: Bound, items: Sequence[Item], found: Sequence[_Found]
) -> tuple[dict[bytes, Receipt | ItemFailure], list[tuple[Item, _Found]]]:
    """The receipts of what was applied before, and the rest.

    Raises:
        StoreError: a job's id was used by another operation.
    """
    receipts: dict[bytes, Receipt | ItemFailure] = {}
    fresh = []
    for item, stands in zip(items, found, strict=True):
        command = item.command
        if stands.reused is not None:
            assert stands.match is not None
            match = DuplicateMatch(stands.match)
            receipts[command.job_id] = reused(
                bound, command.operation_id, stands.reused, match, drift=bool(stands.drift)
            )
        elif stands.created_by is None:
            fresh.append((item, stands))
        elif stands.created_by == command.operation_id:
            receipts[command.job_id] = _created(bound, command)
        else:
            raise refusals.operation_conflict(command, stands.created_by)
    return receipts, fresh


def _refuse(fresh: Sequence[tuple[Item, _Found]]) -> list[tuple[Command, int]]:
    """Those that came after their deadline, and by how many milliseconds each is late. An earlier sending of the same
    may be at it in this very moment.

    Raises:
        OutcomeUnknown: one comes so late that nobody knows.
        StoreError: there are none, and the application may not have rate windows, which one needs.
    """
    late = []
    for item, stands in fresh:
        too_late = refusals.too_late(item.command, stands.now_ms)
        if isinstance(too_late, OutcomeUnknown):
            raise too_late
        if too_late is not None:
            late.append((item.command, stands.now_ms - item.command.deadline_ms))
    for item, stands in fresh:
        if item.command.rates and not late and not stands.may_have_rates:
            raise refusals.rate_admission_not_active(item.command.application)
    return late


def _decide(fresh: Sequence[tuple[Item, _Found]], *, continue_on_conflict: bool) -> list[Answer]:
    active: dict[bytes, ActiveHolder] = {}
    windows: dict[bytes, WindowHolder] = {}
    for item, stands in fresh:
        if item.active is not None and stands.active_job is not None:
            active[item.active] = ActiveHolder(stands.active_job, stands.active_policy)
        if item.window is not None and stands.window_job is not None:
            assert stands.fingerprint is not None
            assert stands.until_ms is not None
            windows[item.window] = WindowHolder(
                stands.window_job, stands.window_policy, stands.fingerprint, stands.until_ms
            )
    now_ms = fresh[0][1].now_ms if fresh else 0
    items = [item for item, _ in fresh]
    return uniqueness.resolve(items, active, windows, now_ms, continue_on_conflict=continue_on_conflict)


def _answered(bound: Bound, answer: Answer) -> Receipt | ItemFailure:
    command = answer.item.command
    if isinstance(answer, Conflict):
        return uniqueness.conflict_failure(answer)
    if isinstance(answer, Reuse):
        return reused(bound, command.operation_id, answer.job, answer.match, drift=answer.drift)
    return _created(bound, command)


def _created(bound: Bound, command: Command) -> Receipt:
    return Receipt(command.job_id, command.operation_id, ReceiptDisposition.CREATED, bound.profile)


def _write(bound: Bound, number: int, answers: Sequence[Answer], read_at_ms: int) -> tuple[object, ...]:
    """All of ``dispatch_keyed.sql`` but whether to tell, and what is kept of a dispatch by hand."""
    creates = [answer.item for answer in answers if isinstance(answer, Create)]
    names, commands = bound.names, [item.command for item in creates]
    return (
        *bound.gate(),
        packed.number(number),
        packed.number(read_at_ms),
        packed.ids([command.job_id for command in commands]),
        packed.ids([command.operation_id for command in commands]),
        packed.numbers([names.lanes[number, command.lane] for command in commands]),
        packed.numbers([names.kinds[number, command.kind] for command in commands]),
        packed.numbers([names.policies[command.policy] for command in commands]),
        *job_columns(commands),
        packed.texts([command.active_key for command in commands]),
        packed.texts([command.window_key for command in commands]),
        packed.optional_ids([item.active for item in creates]),
        *needs_columns(commands),
        *limits_columns(commands),
        *window_key_columns(answers),
        *reuse_columns(answers),
    )


def _know(bound: Bound, commands: Sequence[Command]) -> None:
    """Scopes of queues and job types that are there by now."""
    bound.names.scopes.update(
        (command.application, need.kind, need.key)
        for command in commands
        for need in command.scopes
        if need.kind is not LimitKind.RESOURCE
    )
