"""Recover: attempts that nobody keeps any more are closed as the policy says.

Those are the ones whose lease ran out, or all that a worker held which is known to be dead.
"""

from collections.abc import Callable

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Settlement
from runwick.contracts.stores import Act
from runwick.stores.memory.claim import attempt_of
from runwick.stores.memory.ending import abandon, check
from runwick.stores.memory.lease import end_presence
from runwick.stores.memory.rows import Lease
from runwick.stores.memory.tables import Tables, act


def recover(
    tables: Tables,
    application: str,
    decide: Callable[[Attempt], Settlement],
    limit: int,
    worker: bytes | None,
    clock: Clock,
) -> Act[int]:
    """Close up to `limit` such attempts of an application, those whose lease ends first; answers how many."""
    return act("recover", lambda: _recover(tables, application, decide, limit, worker, clock.now_ms()))


def _recover(
    tables: Tables,
    application: str,
    decide: Callable[[Attempt], Settlement],
    limit: int,
    worker: bytes | None,
    now_ms: int,
) -> int:
    tables.admit("recover", application)

    def is_kept(lease: Lease) -> bool:
        return lease.until_ms > now_ms if worker is None else lease.worker != worker

    ends = [
        (row.lease.until_ms, row.job)
        for row in tables.leased(application)
        if row.lease is not None and not is_kept(row.lease)
    ]
    decided = []
    for _, job in sorted(ends)[:limit]:
        row = tables.rows[job]
        settlement = decide(msgspec.structs.replace(attempt_of(row), payload=None, fences=()))
        check(row, settlement)
        decided.append((row, settlement))
    for row, settlement in decided:
        abandon(tables, row, settlement, now_ms)
    tables.call_in(now_ms)
    if worker is not None:
        end_presence(tables, application, worker, now_ms)
    return len(decided)
