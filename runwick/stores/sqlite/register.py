"""Register: a worker makes known what it is about to serve, before it starts anything."""

from collections.abc import Sequence

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.limits import ScopeNeed
from runwick.contracts.stores import Act
from runwick.policy.limit_ids import scope_id
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned, Naming
from runwick.stores.sqlite.limits import declare
from runwick.stores.steps import Steps


def register(
    gate: Gate,
    interned: Interned,
    application: str,
    lanes: Sequence[Lane],
    kinds: frozenset[Kind],
    scopes: Sequence[ScopeNeed],
    clock: Clock,
) -> Act[None]:
    """Make known what a worker is about to serve; a second time it changes nothing."""
    return Act("register", lambda: _register(gate, interned, application, lanes, kinds, scopes, clock))


def _register(
    gate: Gate,
    interned: Interned,
    application: str,
    lanes: Sequence[Lane],
    kinds: frozenset[Kind],
    scopes: Sequence[ScopeNeed],
    clock: Clock,
) -> Steps[None]:
    gate.admit("register", application)
    naming = Naming(interned)
    number = yield from naming.number(interned.applications, application)
    for lane in lanes:
        yield from naming.number(interned.lanes, (number, lane))
    for kind in sorted(kinds):
        yield from naming.number(interned.kinds, (number, kind))
    if scopes:
        needs = [(scope_id(application, need.kind, need.key), need) for need in scopes]
        yield from declare(interned, number, dict(reversed(needs)), clock.now_ms())
