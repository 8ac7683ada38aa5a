"""Register: a worker makes known what it is about to serve, so that its claims find numbers for all its names."""

from collections.abc import Sequence

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Step, Steps


def register(bound: Bound, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> Act[None]:
    """Make an application, its lanes and kinds known; only an open application takes it."""
    return Act("register", lambda: _register(bound, Wanted(application, lanes, tuple(kinds))))


def _register(bound: Bound, wanted: Wanted) -> Steps[None]:
    application = yield from bound.names.make(wanted, "register")
    yield Step("register", (*bound.gate(), packed.number(application)))
    bound.names.serves.add(application)
