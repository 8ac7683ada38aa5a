"""Limits that an application declares otherwise than they stand in its store. The store's hold; nothing is changed."""

from runwick.config.drifts import drifting
from runwick.contracts.limits import Drift
from runwick.contracts.stores import Store
from runwick.declarations.catalog import Catalog
from runwick.runtime.asking import ask


def drifted_limits(catalog: Catalog, store: Store) -> list[Drift]:
    """Those of its queues and job types that differ; those that the store does not know yet are none.

    Raises:
        StoreError: the store refuses, or does not answer.
    """
    return ask(store, drifting(store, catalog.application, catalog.limits, catalog.queues, catalog.jobs))


def drift_text(drift: Drift) -> str:
    """One sentence for people."""
    return f"{drift.kind.value} {drift.key} has {drift.stored} in the store, which holds; declared is {drift.declared}"
