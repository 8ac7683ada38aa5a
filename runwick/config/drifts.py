"""Where declarations and a store differ: the limits of queues and job types that stand otherwise there."""

from collections.abc import Callable, Collection, Generator
from typing import Any, Final, TypeVar

from runwick.contracts.attempts import Kind
from runwick.contracts.limits import DeclaredLimits, Drift, LimitKind, RateRecord, ScopeRecord
from runwick.contracts.stores import Act, LimitStore
from runwick.policy.drift import drifts
from runwick.runtime.asking import Request

Limit = TypeVar("Limit", ScopeRecord, RateRecord)

_PAGE: Final = 1_000


def drifting(
    store: LimitStore, application: str, declared: DeclaredLimits, queues: Collection[str], kinds: Collection[Kind]
) -> Request[list[Drift]]:
    """The limits of these queues and job types that the store holds otherwise than declared, sorted; those that it does
    not know yet are none."""
    scopes = yield from _all(lambda after: store.scopes(application, LimitKind.QUEUE, after, _PAGE))
    scopes += yield from _all(lambda after: store.scopes(application, LimitKind.JOB_TYPE, after, _PAGE))
    rates = yield from _all(lambda after: store.rates(application, LimitKind.JOB_TYPE, after, _PAGE))
    return drifts(declared, queues, kinds, scopes, rates)


def _all(read: Callable[[bytes | None], Act[list[Limit]]]) -> Generator[Act[Any] | float, Any, list[Limit]]:
    found: list[Limit] = []
    while True:
        page: list[Limit] = yield read(found[-1].id if found else None)
        found += page
        if len(page) < _PAGE:
            return found
