"""Expire: jobs that wait past their expiry end, whether or not anybody serves their lane."""

from runwick.contracts.ambient import Clock
from runwick.contracts.stores import Act
from runwick.stores.memory.rows import JobRow
from runwick.stores.memory.tables import Tables, act


def expire(tables: Tables, application: str, limit: int, clock: Clock) -> Act[int]:
    """Close up to `limit` waiting jobs as expired, the longest expired first; answers how many."""
    return act("expire", lambda: _expire(tables, application, limit, clock.now_ms()))


def _expire(tables: Tables, application: str, limit: int, now_ms: int) -> int:
    tables.admit("expire", application)
    waiting = (row for row in tables.rows.values() if row.command.application == application and row.waits)
    expired = sorted((row for row in waiting if row.has_expired(now_ms)), key=_expiry)[:limit]
    for row in expired:
        tables.leave(row)
        tables.close_expired(row, now_ms)
    tables.call_in(now_ms)
    return len(expired)


def _expiry(row: JobRow) -> tuple[int, int]:
    return row.expires_at_ms or 0, row.job
