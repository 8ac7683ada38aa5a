"""Register: a worker makes known what it is about to serve, before it starts anything.

Kinds need no preparation here; queues, and the scopes that are not there yet, are written down.
"""

from collections.abc import Sequence

from runwick.contracts.attempts import Lane
from runwick.contracts.limits import ScopeNeed
from runwick.contracts.stores import Act
from runwick.stores.memory.tables import Tables, act


def register(tables: Tables, application: str, lanes: Sequence[Lane], scopes: Sequence[ScopeNeed]) -> Act[None]:
    """Make an application, its queues and these scopes known."""
    return act("register", lambda: _register(tables, application, lanes, scopes))


def _register(tables: Tables, application: str, lanes: Sequence[Lane], scopes: Sequence[ScopeNeed]) -> None:
    tables.admit("register", application)
    tables.know(application)
    for lane in lanes:
        tables.know_queue(application, lane.queue)
    tables.limits.declare(application, scopes)
