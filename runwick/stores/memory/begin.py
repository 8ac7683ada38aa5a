"""Begin: a reserved attempt is authorised to call its handler, charged, and given its payload.

A job that somebody cancelled, or that has expired, ends instead and is charged nothing. Sent again, the act finds the
attempt begun and charges nothing.
"""

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt, Begun
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores.memory.tables import Tables, act


def begin(tables: Tables, attempt: Attempt, clock: Clock) -> Act[Begun]:
    """Authorise and charge a reserved attempt and read its payload."""
    return act("begin", lambda: _begin(tables, attempt, clock.now_ms()))


def _begin(tables: Tables, attempt: Attempt, now_ms: int) -> Begun:
    row = tables.held(attempt)
    if row is None or row.lease is None or row.lease.until_ms <= now_ms:
        return Begun(None)
    tables.admit("begin", row.command.application)
    if row.state is JobState.RESERVED:
        if row.cancel_stands:
            tables.close_cancelled(row, now_ms)
            tables.call_in(now_ms)
            return Begun(None, "cancel_requested")
        if row.has_expired(now_ms):
            tables.close_expired(row, now_ms)
            tables.call_in(now_ms)
            return Begun(None, "expired")
        row.state = JobState.RUNNING
        row.revision += 1
        row.executions += 1
    return Begun(msgspec.structs.replace(attempt, begun=True, execution=row.executions, payload=row.command.payload))
