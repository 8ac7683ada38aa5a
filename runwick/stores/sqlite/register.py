"""Register: a worker makes known what it is about to serve, before it starts anything."""

from collections.abc import Sequence

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.stores import Act
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned, Naming
from runwick.stores.steps import Steps


def register(
    gate: Gate, interned: Interned, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]
) -> Act[None]:
    """Make known what a worker is about to serve; a second time it changes nothing."""
    return Act("register", lambda: _register(gate, interned, application, lanes, kinds))


def _register(
    gate: Gate, interned: Interned, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]
) -> Steps[None]:
    gate.admit("register", application)
    naming = Naming(interned)
    number = yield from naming.number(interned.applications, application)
    for lane in lanes:
        yield from naming.number(interned.lanes, (number, lane))
    for kind in sorted(kinds):
        yield from naming.number(interned.kinds, (number, kind))
