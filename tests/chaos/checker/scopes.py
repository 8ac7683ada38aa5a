"""Scopes: never more at once than the capacity allows, every place given back once, and tokens that rise."""

import collections
import itertools
from collections.abc import Iterator

from runwick.contracts.attempts import PAYLOAD_INLINE_MAX_BYTES
from runwick.contracts.identity import id_text
from runwick.contracts.limits import LimitKind
from runwick.policy.limit_ids import scope_id
from tests.chaos.history import History, LimitChange, Mark, StoredScope

_SCOPE_CHANGES = ("capacity", "take", "free")


def capacities_are_kept(history: History) -> Iterator[str]:
    """At no claim more hold a scope than its capacity is at that moment; whoever holds one gives it back once, and in
    the end none is held, counted or waited for."""
    scopes = {scope.id: scope for scope in history.scopes}
    by_scope: dict[bytes, list[LimitChange]] = collections.defaultdict(list)
    for change in history.limit_log:
        if change.what in _SCOPE_CHANGES and change.limit is not None:
            by_scope[change.limit].append(change)
    for limit, changes in by_scope.items():
        for wrong in _kept(changes):
            yield f"{_named(scopes.get(limit))}: {wrong}"
    yield from _at_rest(history)
    yield from _taken_with_each_claim(history)
    yield from _as_audited(history)


def _kept(changes: list[LimitChange]) -> Iterator[str]:
    capacity, holders = 0, collections.Counter[bytes]()
    for change in changes:
        job_id = change.job_id or b""
        if change.what == "capacity":
            capacity = change.value or 0
        elif change.what == "take":
            holders[job_id] += 1
            if holders[job_id] > 1:
                yield f"job {id_text(job_id)} holds it twice"
            if holders.total() > capacity:
                yield f"{holders.total()} hold it when job {id_text(job_id)} comes, of {capacity}"
        else:
            holders[job_id] -= 1
            if holders[job_id] < 0:
                yield f"job {id_text(job_id)} gave back what it did not hold"
    for job_id in +holders:
        yield f"job {id_text(job_id)} holds it for ever"


def _at_rest(history: History) -> Iterator[str]:
    waiting = sum(not job.record.state.terminal for job in history.jobs)
    for scope in history.scopes:
        if scope.in_use != scope.held:
            yield f"{_named(scope)}: {scope.in_use} are counted, {scope.held} hold it"
        if not waiting and (scope.in_use or scope.line):
            yield f"{_named(scope)}: at rest {scope.in_use} are in use and {scope.line} stand in line"
        if scope.line and scope.in_use < scope.capacity:
            yield f"{_named(scope)}: {scope.line} stand in line beside room, {scope.in_use} of {scope.capacity}"


def _taken_with_each_claim(history: History) -> Iterator[str]:
    """Whoever was claimed held all its resources, and each claim held them anew."""
    takes = collections.Counter((change.job_id, change.limit) for change in history.limit_log if change.what == "take")
    for job in history.jobs:
        record = job.record
        if (wanted := history.wanted.get(record.job_id)) is None:
            continue
        for need in wanted.scopes:
            limit = scope_id(history.application, need.kind, need.key)
            taken = takes[record.job_id, limit]
            claims = len(record.attempts) + history.given_back.get(record.job_id, 0)
            untold = job.payload_bytes > PAYLOAD_INLINE_MAX_BYTES and not wanted.rates  # reserved: leaves no trace
            if need.kind is LimitKind.RESOURCE and (taken < claims or (taken > claims and not untold)):
                yield f"job {id_text(record.job_id)}: {claims} claims, {taken} holds of {need.key}"


def _as_audited(history: History) -> Iterator[str]:
    """A capacity changes by an operator alone: what was logged is what was audited, one after the other."""
    logged: dict[str, list[str]] = collections.defaultdict(list)
    names = {scope.id: f"{scope.kind.value} {scope.key}" for scope in history.scopes}
    for change in history.limit_log:
        if change.what == "capacity" and change.limit in names:
            logged[names[change.limit]].append(str(change.value))
    audited: dict[str, list[str]] = collections.defaultdict(list)
    for record in history.audit:
        if record.action == "set_capacity" and record.target is not None:
            steps = audited[record.target]
            steps += [str(record.after)] if steps else [str(record.before), str(record.after)]
    for name, values in logged.items():
        if values != (audited.get(name) or values[:1]):
            yield f"{name}: its capacity was {values} one after the other, audited is {audited.get(name)}"


def tokens_rise(history: History) -> Iterator[str]:
    """Every holder of a resource of capacity 1 gets a higher token than all before; runs show the token of their own
    claim; and the resource, which remembers the highest it has seen, takes no lower one after it."""
    names = {scope.id: scope.key for scope in history.scopes}
    given: dict[tuple[bytes, str], set[int]] = collections.defaultdict(set)
    last: dict[bytes, int] = {}
    capacity: dict[bytes, int] = {}
    resources = {scope.id for scope in history.scopes if scope.kind is LimitKind.RESOURCE}
    for change in history.limit_log:
        if change.limit not in resources or change.limit is None:
            continue
        if change.what == "capacity":
            capacity[change.limit] = change.value or 0
        if change.what != "take" or change.job_id is None:
            continue
        who = f"resource {names[change.limit]}: job {id_text(change.job_id)}"
        if (change.value is not None) != (capacity.get(change.limit) == 1):
            yield f"{who} came with token {change.value} at a capacity of {capacity.get(change.limit)}"
        if change.value is not None:
            if change.value <= last.get(change.limit, 0):
                yield f"{who} came with token {change.value} after {last[change.limit]}"
            last[change.limit] = change.value
            given[change.job_id, names[change.limit]].add(change.value)
    yield from _shown(history, given)
    yield from _remembered(history)


def _shown(history: History, given: dict[tuple[bytes, str], set[int]]) -> Iterator[str]:
    """Each run's tokens are among those that its job got, and no two runs show the same."""
    shown: dict[tuple[str, int], bytes] = {}
    for mark in history.marks:
        for fence in mark.fences if mark.step == "begin" else ():
            who = f"attempt {id_text(mark.attempt_id)}: token {fence.value} of {fence.scope}"
            if fence.value not in given.get((mark.job_id, fence.scope), ()):
                yield f"{who} was never given to its job"
            if shown.setdefault((fence.scope, fence.value), mark.attempt_id) != mark.attempt_id:
                yield f"{who} was shown by another attempt too"


def _remembered(history: History) -> Iterator[str]:
    """The resource's own log stands in the order in which it answered."""
    by_resource: dict[str, list[Mark]] = collections.defaultdict(list)
    for mark in history.marks:
        if mark.step == "accepted":
            by_resource[mark.fences[0].scope].append(mark)
    for resource, marks in by_resource.items():
        highest = itertools.accumulate((mark.fences[0].value for mark in marks), max, initial=0)
        for mark, before in zip(marks, highest, strict=False):
            if mark.step == "accepted" and mark.fences[0].value < before:
                yield f"resource {resource} accepted token {mark.fences[0].value} after {before}"


def _named(scope: StoredScope | None) -> str:
    return "a scope that is gone" if scope is None else f"scope {scope.kind.value} {scope.key}"
