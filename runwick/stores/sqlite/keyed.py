"""Keyed: a dispatch where some jobs have uniqueness keys or limits of their own, or one that somebody does by hand.

::

    read what was applied, who holds the keys ──▶ `policy.uniqueness` ──▶ write: jobs with their needs, limits that are
                                                                         not there, keys, receipts of what was found

Everything happens under SQLite's write lock: what was read still holds when it is written, so nobody races for a key.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from runwick.contracts.administration import Capability
from runwick.contracts.dispatching import Command, DuplicateMatch, Receipt
from runwick.contracts.errors import ItemFailure
from runwick.contracts.limits import LimitKind, RateNeed, ScopeNeed
from runwick.contracts.revealing import AuditNote
from runwick.policy import uniqueness
from runwick.policy.limit_ids import rate_id, scope_id
from runwick.stores import refusals
from runwick.stores.controls import command_conflict
from runwick.stores.sqlite import by_hand, receipts
from runwick.stores.sqlite.entering import enter
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned, Naming
from runwick.stores.sqlite.limits import declare, joined
from runwick.stores.sqlite.ready import RESOURCES, WINDOWED
from runwick.stores.steps import Step, Steps


class _Applied(NamedTuple):
    """What was applied before of a batch."""

    created: dict[bytes, bytes]
    """Job id to the operation that created it."""
    reused: dict[bytes, Receipt]
    """By operation id."""

    def has(self, command: Command) -> bool:
        return command.job_id in self.created or command.operation_id in self.reused


def is_plain(interned: Interned, command: Command) -> bool:
    """Whether the command creates a job and nothing else. Scopes of its queue and its type do not count where they are
    known to be there: they never go."""
    if command.active_key is not None or command.window_key is not None or command.rates:
        return False
    if not command.scopes:
        return True
    application = interned.applications.ids.get(command.application, 0)
    return all((application, need.kind.value, need.key) in interned.intake.scopes for need in command.scopes)


def dispatch_keyed(
    gate: Gate,
    interned: Interned,
    commands: Sequence[Command],
    first: int,
    now_ms: int,
    *,
    continue_on_conflict: bool,
    note: AuditNote | None,
) -> Steps[list[Receipt | ItemFailure]]:
    """Create these jobs, or find the ones that their keys name; answers in input order.

    Args:
        first: the next position in commit order.
        note: who dispatches the one command by hand.
    """
    yield from interned.refresh()
    if note is not None:
        gate.check_meant(commands[0])
        before = yield from by_hand.dispatched_before(interned, commands[0], note)
        if before is not None:
            return [before]
    applied = yield from _applied(commands)
    if note is not None and applied.has(commands[0]):
        raise command_conflict(commands[0])
    yield from _check(gate, commands, applied, now_ms)
    firsts = {command.job_id: len(commands) - place for place, command in enumerate(reversed(commands), 1)}
    items = [
        uniqueness.item_of(ordinal, command, command.policy)
        for ordinal, command in enumerate(commands)
        if firsts[command.job_id] == ordinal and not applied.has(command)
    ]
    active = yield from _active_holders(interned, items)
    windows = yield from _window_holders(interned, items)
    answers = uniqueness.resolve(items, active, windows, now_ms, continue_on_conflict=continue_on_conflict)
    failures = {}
    for answer in answers:
        if isinstance(answer, uniqueness.Conflict):
            failures[answer.item.command.job_id] = uniqueness.conflict_failure(answer)
        elif isinstance(answer, uniqueness.Reuse):
            operation_id = answer.item.command.operation_id
            applied.reused[operation_id] = receipts.reused(operation_id, answer.job, answer.match, answer.drift)
    naming = Naming(interned)
    yield from _write(naming, answers, first, now_ms)
    replies = [
        msgspec.structs.replace(failures[command.job_id], ordinal=ordinal)
        if command.job_id in failures
        else applied.reused.get(command.operation_id, receipts.created(command.job_id, command.operation_id))
        for ordinal, command in enumerate(commands)
    ]
    if note is not None and isinstance(replies[0], Receipt):
        yield from by_hand.keep(naming, commands[0], note, replies[0], first, now_ms)
    return replies


def _applied(commands: Sequence[Command]) -> Steps[_Applied]:
    created = yield Step("dispatched_some", (joined(command.job_id for command in commands),))
    found = yield Step("reused_some", (joined(command.operation_id for command in commands),))
    reused = {
        operation_id: receipts.reused(operation_id, job_id, DuplicateMatch(match), bool(drift))
        for operation_id, job_id, match, drift in found
    }
    return _Applied(dict(created), reused)


def _check(gate: Gate, commands: Sequence[Command], applied: _Applied, now_ms: int) -> Steps[None]:
    """Refuse what may not be applied now, unless it was before. What was sent before, or twice in this batch, must come
    from the same operation."""
    operations = {command.job_id: command.operation_id for command in reversed(commands)}
    for command in commands:
        gate.check_meant(command)
        created_by = applied.created.get(command.job_id, operations[command.job_id])
        if created_by != command.operation_id:
            raise refusals.operation_conflict(command, created_by)
        refusal = gate.refusal("dispatch", command.application) or refusals.too_late(command, now_ms)
        if refusal is not None and not applied.has(command):
            raise refusal
    for application in sorted({c.application for c in commands if c.rates and not applied.has(c)}):
        ((capabilities,),) = yield Step("capabilities", (application,))
        if Capability.RATE_ADMISSION.value not in msgspec.json.decode(capabilities, type=list[str]):
            raise refusals.rate_admission_not_active(application)


def _active_holders(
    interned: Interned, items: Sequence[uniqueness.Item]
) -> Steps[dict[bytes, uniqueness.ActiveHolder]]:
    ids = joined(item.active for item in items if item.active is not None)
    rows = (yield Step("active_holders", (ids,))) if ids else ()
    policies = interned.policies.values
    return {key: uniqueness.ActiveHolder(job_id, policies[policy]) for key, job_id, policy in rows}


def _window_holders(
    interned: Interned, items: Sequence[uniqueness.Item]
) -> Steps[dict[bytes, uniqueness.WindowHolder]]:
    ids = joined(item.window for item in items if item.window is not None)
    rows = (yield Step("window_holders", (ids,))) if ids else ()
    policies = interned.policies.values
    return {
        key: uniqueness.WindowHolder(job_id, policies.get(policy), fingerprint, until_ms)
        for key, job_id, policy, fingerprint, until_ms in rows
    }


def _write(naming: Naming, answers: Iterable[uniqueness.Answer], first: int, now_ms: int) -> Steps[None]:
    """Write what was decided. A batch is of one application."""
    done = [answer for answer in answers if not isinstance(answer, uniqueness.Conflict)]
    created = [answer.item for answer in done if isinstance(answer, uniqueness.Create)]
    if created:
        yield from enter(naming, [item.command for item in created], first, now_ms)
        yield from _write_needs(naming, created, first, now_ms)
    reused: list[tuple[object, ...]] = []
    keys: list[tuple[object, ...]] = []
    for answer in done:
        item, command = answer.item, answer.item.command
        application = yield from naming.number(naming.interned.applications, command.application)
        job_id, links = command.job_id, True
        if isinstance(answer, uniqueness.Reuse):
            job_id, links = answer.job, answer.links
            receipt = (command.deadline_ms, answer.drift, answer.match.value)
            reused.append((command.operation_id, application, job_id, *receipt))
        if links and item.window is not None:
            until_ms = uniqueness.window_until_ms(item, now_ms)
            keys.append((item.window, application, job_id, until_ms, command.fingerprint))
    if reused:
        yield Step("reused_add", reused, many=True)
    if keys:
        yield Step("uniqueness_put", keys, many=True)


def _write_needs(naming: Naming, created: Sequence[uniqueness.Item], first: int, now_ms: int) -> Steps[None]:
    """What these new jobs need, and the limits among it that are not there."""
    needs: list[tuple[object, ...]] = []
    limits: list[tuple[object, ...]] = []
    scopes: dict[bytes, ScopeNeed] = {}
    rates: dict[bytes, RateNeed] = {}
    for position, item in enumerate(created, first):
        command = item.command
        own_scopes = {scope_id(command.application, need.kind, need.key): need for need in command.scopes}
        own_rates = {_window_of(command.application, need): need for need in command.rates}
        scopes, rates = own_scopes | scopes, own_rates | rates
        resources = [limit for limit, need in own_scopes.items() if need.kind is LimitKind.RESOURCE]
        limited = WINDOWED if own_rates else RESOURCES if resources else 0
        if limited or item.active is not None or item.window is not None:
            needed = (joined(resources) or None, joined(own_rates) or None)
            needs.append((position, item.active, command.active_key, command.window_key, *needed))
            limits.append((position, limited, item.active))
    application = yield from naming.number(naming.interned.applications, created[0].command.application)
    yield from declare(naming.interned, application, scopes, now_ms)
    if rates:
        rows = [
            (limit, application, need.kind.value, need.key, need.max_executions, need.window_ms, now_ms)
            for limit, need in rates.items()
        ]
        yield Step("rate_add", rows, many=True)
    if needs:
        yield Step("need_add", needs, many=True)
        yield Step("dispatch_limits", limits, many=True)


def _window_of(application: str, need: RateNeed) -> bytes:
    return rate_id(application, need.kind, need.key, need.window_ms if need.kind is LimitKind.RESOURCE else None)
