"""Register: a worker makes known what it is about to serve, before it starts anything."""

from collections.abc import Sequence

from runwick.contracts.attempts import Lane
from runwick.contracts.limits import ScopeNeed
from runwick.contracts.stores import Act
from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.intake import scopes as declared


def register(application: str, lanes: Sequence[Lane], scopes: Sequence[ScopeNeed]) -> Act[None]:
    """Make an application, its queues and these scopes known; kinds need no preparation."""
    return Act("register", lambda: _register(application, lanes, scopes))


def _register(application: str, lanes: Sequence[Lane], scopes: Sequence[ScopeNeed]) -> Calls[None]:
    queues = list(dict.fromkeys(lane.queue for lane in lanes))
    yield Call("register", application, packed.arguments(queues, declared(application, scopes)))
