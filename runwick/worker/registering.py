"""How a worker registers: what it serves is made known, and which limits stand otherwise in the store is found."""

from collections.abc import Sequence
from typing import Protocol

from runwick.config.drifts import drifting
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.limits import DeclaredLimits, Drift
from runwick.contracts.stores import ClaimStore, LimitStore
from runwick.runtime.asking import Request


class RegisterStore(ClaimStore, LimitStore, Protocol):
    """What it takes of a store."""


def registering(
    store: RegisterStore, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], declared: DeclaredLimits
) -> Request[list[Drift]]:
    """Make known what a worker is about to serve, with the limits that are not there yet; answers as `drifting`."""
    yield store.register(application, lanes, kinds, declared.scopes)
    return (yield from drifting(store, application, declared, {lane.queue for lane in lanes}, kinds))
