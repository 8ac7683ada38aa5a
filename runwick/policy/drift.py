"""Which limits of a store are not what an application declares. The store's hold, whatever the code says."""

from collections.abc import Collection, Iterable

from runwick.contracts.attempts import Kind
from runwick.contracts.limits import DeclaredLimits, Drift, LimitKind, RateNeed, RateRecord, ScopeRecord


def drifts(
    declared: DeclaredLimits,
    queues: Collection[str],
    kinds: Collection[Kind],
    scopes: Iterable[ScopeRecord],
    rates: Iterable[RateRecord],
) -> list[Drift]:
    """The differences, sorted. What is not in the store yet is none.

    Args:
        declared: what the code says of queues and job types.
        queues: those that are looked at; a scope of one of them that the code does not declare is a difference.
        kinds: likewise. A window that the code does not declare any more concerns no job to come, and is none.
        scopes: of queues and job types, as the store has them.
        rates: of job types, likewise.
    """
    capacities = {(need.kind, need.key): need.capacity for need in declared.scopes}
    windows = {(need.kind, need.key): need for need in declared.rates}
    looked_at = {
        *((LimitKind.QUEUE, queue) for queue in queues),
        *((LimitKind.JOB_TYPE, kind.name) for kind in kinds),
        *capacities,
    }
    found = [
        Drift(scope.kind, scope.key, _capacity(scope.capacity), _capacity(capacity))
        for scope in scopes
        if (scope.kind, scope.key) in looked_at
        and (capacity := capacities.get((scope.kind, scope.key))) != scope.capacity
    ]
    found += [
        Drift(rate.kind, rate.key, _rate(rate), _rate(need))
        for rate in rates
        if (need := windows.get((rate.kind, rate.key))) is not None and _rate(need) != _rate(rate)
    ]
    return sorted(found)


def _capacity(capacity: int | None) -> str:
    return "no limit" if capacity is None else f"capacity {capacity}"


def _rate(rate: RateNeed | RateRecord) -> str:
    return f"{rate.max_executions} per {rate.window_ms / 1000:g} s"
