"""Register: a worker makes known what it is about to serve, before it starts anything.

Nothing has to be prepared here for lanes and kinds; the application alone is written down.
"""

from runwick.contracts.stores import Act
from runwick.stores.memory.tables import Tables, act


def register(tables: Tables, application: str) -> Act[None]:
    """Make an application known."""
    return act("register", lambda: _register(tables, application))


def _register(tables: Tables, application: str) -> None:
    tables.admit("register", application)
    tables.know(application)
