"""Leases and presence: one call renews what a worker holds, says that it lives, and asks for the recovery pass.

An expired lease is never renewed, even while nobody has taken its job yet.
"""

from collections.abc import Sequence

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Beat, Held, WorkerPresence
from runwick.contracts.stores import Act
from runwick.stores.memory.tables import Tables, act


def renew(
    tables: Tables,
    presence: WorkerPresence,
    held: Sequence[Held],
    lease_ms: int,
    recovery_interval_ms: int,
    clock: Clock,
) -> Act[Beat]:
    """Renew the leases still owned, tell the worker's presence, and ask whether the recovery pass is due."""
    return act("renew", lambda: _renew(tables, presence, held, lease_ms, recovery_interval_ms, clock.now_ms()))


def _renew(
    tables: Tables,
    presence: WorkerPresence,
    held: Sequence[Held],
    lease_ms: int,
    recovery_interval_ms: int,
    now_ms: int,
) -> Beat:
    tables.admit("renew", presence.application)
    tables.know(presence.application)
    lost = frozenset(item.job for item in held if not _renewed(tables, item, lease_ms, now_ms))
    tables.workers[presence.worker] = presence, now_ms
    return Beat(lost, frozenset(), _runs_the_pass(tables, presence.application, recovery_interval_ms, now_ms))


def _renewed(tables: Tables, held: Held, lease_ms: int, now_ms: int) -> bool:
    row = tables.rows.get(held.job)
    if row is None or row.lease is None or row.lease.claim_token != held.claim_token or row.lease.until_ms <= now_ms:
        return False
    row.lease.until_ms = now_ms + lease_ms
    return True


def _runs_the_pass(tables: Tables, application: str, interval_ms: int, now_ms: int) -> bool:
    """Let one worker per interval through; a time further away than the interval comes from a clock set back."""
    next_at_ms = tables.next_recovery_ms.get(application, now_ms)
    if now_ms < next_at_ms <= now_ms + interval_ms:
        return False
    tables.next_recovery_ms[application] = now_ms + interval_ms
    return True


def depart(tables: Tables, presence: WorkerPresence) -> Act[None]:
    """Say good-bye: the presence ends at once."""
    return act("depart", lambda: _depart(tables, presence))


def _depart(tables: Tables, presence: WorkerPresence) -> None:
    tables.admit("depart", presence.application)
    tables.workers.pop(presence.worker, None)
