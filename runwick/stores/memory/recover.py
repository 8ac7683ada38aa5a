"""Recover: attempts whose lease ran out are closed as the policy says, whoever held them."""

from collections.abc import Callable

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Expired
from runwick.contracts.outcomes import Settlement
from runwick.contracts.stores import Act
from runwick.stores.memory.claim import attempt_of
from runwick.stores.memory.ending import abandon, check
from runwick.stores.memory.tables import Tables, act


def recover(
    tables: Tables, application: str, decide: Callable[[Expired], Settlement], limit: int, clock: Clock
) -> Act[int]:
    """Close up to `limit` expired attempts of an application, the longest expired first; answers how many."""
    return act("recover", lambda: _recover(tables, application, decide, limit, clock.now_ms()))


def _recover(tables: Tables, application: str, decide: Callable[[Expired], Settlement], limit: int, now_ms: int) -> int:
    tables.admit("recover", application)
    ends = [
        (row.lease.until_ms, row.job)
        for row in tables.leased(application)
        if row.lease is not None and row.lease.until_ms <= now_ms
    ]
    decided = []
    for _, job in sorted(ends)[:limit]:
        row = tables.rows[job]
        attempt = msgspec.structs.replace(attempt_of(row), payload=None)
        settlement = decide(Expired(attempt, row.cancel_requested))
        check(row, settlement)
        decided.append((row, settlement))
    for row, settlement in decided:
        abandon(tables, row, settlement, now_ms)
    return len(decided)
