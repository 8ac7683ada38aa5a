"""Begin: a reserved attempt is authorised to call its handler, charged, and given its payload.

Sent again, it finds the attempt begun and charges nothing.
"""

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores.memory.tables import Tables, act


def begin(tables: Tables, attempt: Attempt, clock: Clock) -> Act[Attempt | None]:
    """Authorise and charge a reserved attempt and read its payload; None when it is no longer the caller's."""
    return act("begin", lambda: _begin(tables, attempt, clock.now_ms()))


def _begin(tables: Tables, attempt: Attempt, now_ms: int) -> Attempt | None:
    row = tables.held(attempt)
    if row is None or row.lease is None or row.lease.until_ms <= now_ms:
        return None
    tables.admit("begin", row.command.application)
    if row.state is JobState.RESERVED:
        row.state = JobState.RUNNING
        row.revision += 1
        row.executions += 1
    return msgspec.structs.replace(attempt, begun=True, execution=row.executions, payload=row.command.payload)
