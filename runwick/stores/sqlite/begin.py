"""Begin: a reserved attempt is authorised to call its handler, charged, and given its payload.

Sent again, it finds the attempt begun and charges nothing.
"""

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt
from runwick.contracts.stores import Act
from runwick.stores.sqlite.gate import Gate
from runwick.stores.steps import Step, Steps


def begin(gate: Gate, attempt: Attempt, clock: Clock) -> Act[Attempt | None]:
    """Authorise and charge a reserved attempt and read its payload; None when it is no longer the caller's."""
    return Act("begin", lambda: _begin(gate, attempt, clock))


def _begin(gate: Gate, attempt: Attempt, clock: Clock) -> Steps[Attempt | None]:
    fence = (attempt.job, attempt.claim_token, clock.now_ms())
    yield Step("begin_charge", fence)
    rows = yield Step("begin_read", fence)
    if not rows:
        return None
    ((application, executions, payload),) = rows
    gate.admit("begin", application)  # raised, it takes the charge back
    return msgspec.structs.replace(attempt, begun=True, execution=executions, payload=payload)
