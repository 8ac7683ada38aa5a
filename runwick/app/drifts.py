"""Limits that an application declares otherwise than they stand in its store. The store's hold; nothing is changed."""

from collections.abc import Iterator
from typing import Final

from runwick.contracts.limits import Drift, LimitKind, ScopeRecord
from runwick.contracts.stores import Store
from runwick.declarations.catalog import Catalog

_PAGE: Final = 1_000


def drifted_limits(catalog: Catalog, store: Store) -> list[Drift]:
    """The scopes of its queues and job types whose capacity differs; those that no worker has made known are none.

    Raises:
        StoreError: the store refuses, or does not answer.
    """
    declared = {(need.kind, need.key): need.capacity for need in catalog.scopes}
    kinds = sorted({need.kind for need in catalog.scopes})
    return sorted(
        Drift(scope.kind, scope.key, f"capacity {scope.capacity}", f"capacity {capacity}")
        for kind in kinds
        for scope in _scopes(catalog.application, store, kind)
        if (capacity := declared.get((scope.kind, scope.key))) not in (None, scope.capacity)
    )


def drift_text(drift: Drift) -> str:
    """One sentence for people."""
    return f"{drift.kind.value} {drift.key} has {drift.stored} in the store, which holds; declared is {drift.declared}"


def _scopes(application: str, store: Store, kind: LimitKind) -> Iterator[ScopeRecord]:
    after = None
    while page := store.run(store.scopes(application, kind, after, _PAGE)):
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].id
