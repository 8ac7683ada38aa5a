"""Register: a worker makes known what it is about to serve, so that its claims find numbers for all its names, and the
scopes of its queues and job types stand before it claims anything."""

from collections.abc import Sequence

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.limits import LimitKind, ScopeNeed
from runwick.contracts.stores import Act
from runwick.policy.limit_ids import scope_id
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Preparation, Step, Steps


def register(
    bound: Bound, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind], scopes: Sequence[ScopeNeed]
) -> Act[None]:
    """Make an application, its lanes, kinds and these scopes known; only an open application takes it."""
    return Act("register", lambda: _register(bound, Wanted(application, lanes, tuple(kinds)), scopes))


def _register(bound: Bound, wanted: Wanted, scopes: Sequence[ScopeNeed]) -> Steps[None]:
    application = yield from bound.names.make(wanted, "register")
    number = packed.number(application)
    if scopes:
        columns = (
            packed.ids([scope_id(wanted.application, need.kind, need.key) for need in scopes]),
            packed.texts([need.kind.value for need in scopes]),
            packed.texts([need.key for need in scopes]),
            packed.numbers([need.capacity for need in scopes]),
        )
        yield Preparation("scopes_add", (*bound.gate(), number, *columns))
    yield Step("register", (*bound.gate(), number))
    bound.names.serves.add(application)
    bound.names.scopes.update(
        (wanted.application, need.kind, need.key) for need in scopes if need.kind is not LimitKind.RESOURCE
    )
