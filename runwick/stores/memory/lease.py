"""Leases and presence: one call renews what a worker holds, says that it lives and what it does, hears what is asked of
it, and asks for the recovery pass.

An expired lease is never renewed, even while nobody has taken its job yet; a begun mark counts only under a lease that
holds.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.activity import Beat, ExecutorActivity, Mark, Report, StackRequest
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Held, WorkerPresence
from runwick.contracts.stores import Act
from runwick.stores.activities import executors_json
from runwick.stores.controls import LOOK_LASTS_MS
from runwick.stores.memory.rows import Lease, Worker
from runwick.stores.memory.tables import Tables, act

_LOOKS_MAX: Final = 16


def renew(
    tables: Tables, report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int, clock: Clock
) -> Act[Beat]:
    """Renew the leases still owned and take the worker's report; answer what it has to know."""
    return act("renew", lambda: _renew(tables, report, held, lease_ms, recovery_interval_ms, clock.now_ms()))


def _renew(
    tables: Tables, report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int, now_ms: int
) -> Beat:
    application = report.presence.application
    tables.admit("renew", application)
    tables.know(application)
    lost = set()
    for item in held:
        if (lease := _valid(tables, item, now_ms)) is None:
            lost.add(item.job)
        else:
            lease.until_ms = now_ms + lease_ms
    for mark in report.marks:
        if (lease := _valid(tables, mark, now_ms)) is not None:
            lease.begun_at_ms = mark.begun_at_ms
    _take_down(tables, report, now_ms)
    recovers = _runs_the_pass(tables, application, recovery_interval_ms, now_ms)
    return Beat(
        frozenset(lost), frozenset(), recovers, _cancels(tables, report.presence), _looks(tables, report, now_ms)
    )


def _valid(tables: Tables, item: Held | Mark, now_ms: int) -> Lease | None:
    row = tables.rows.get(item.job)
    if row is None or row.lease is None or row.lease.claim_token != item.claim_token or row.lease.until_ms <= now_ms:
        return None
    return row.lease


def _take_down(tables: Tables, report: Report, now_ms: int) -> None:
    """Keep what the worker tells about itself, and the stacks that it was asked for."""
    presence = report.presence
    worker = tables.workers.setdefault(presence.worker, Worker(presence, now_ms))
    told = worker.presence.kinds if presence.kinds is None else list(presence.kinds)
    worker.presence, worker.seen_at_ms = msgspec.structs.replace(presence, kinds=told), now_ms
    if report.executors is not None:
        kept = msgspec.json.decode(executors_json(report.executors), type=list[ExecutorActivity])
        worker.told_at_ms, worker.executors = now_ms, kept
    for answer in report.stacks:
        look = tables.looks.get(answer.attempt_id)
        if look is not None and look.worker == presence.worker and look.text is None:
            look.text = answer.text


def _cancels(tables: Tables, presence: WorkerPresence) -> list[Held]:
    return [
        Held(row.job, row.lease.claim_token)
        for row in tables.leased(presence.application)
        if row.lease is not None and row.lease.worker == presence.worker and row.cancel_stands
    ]


def _looks(tables: Tables, report: Report, now_ms: int) -> list[StackRequest]:
    """What is asked for and not answered yet, for a while and as long as its attempt goes on."""
    asked = []
    for attempt_id, look in tables.looks.items():
        lease = tables.rows[look.job].lease
        goes_on = lease is not None and lease.attempt_id == attempt_id
        lasts = look.asked_at_ms > now_ms - LOOK_LASTS_MS
        if lasts and goes_on and look.worker == report.presence.worker and look.text is None:
            asked.append(StackRequest(attempt_id, look.job, look.claim_token))
    return asked[:_LOOKS_MAX]


def _runs_the_pass(tables: Tables, application: str, interval_ms: int, now_ms: int) -> bool:
    """Let one worker per interval through; a time further away than the interval comes from a clock set back."""
    next_at_ms = tables.next_recovery_ms.get(application, now_ms)
    if now_ms < next_at_ms <= now_ms + interval_ms:
        return False
    tables.next_recovery_ms[application] = now_ms + interval_ms
    return True


def depart(tables: Tables, presence: WorkerPresence, clock: Clock) -> Act[None]:
    """Say good-bye: the presence ends at once."""
    return act("depart", lambda: _depart(tables, presence, clock.now_ms()))


def _depart(tables: Tables, presence: WorkerPresence, now_ms: int) -> None:
    tables.admit("depart", presence.application)
    if (known := end_presence(tables, presence.application, presence.worker, now_ms)) is not None:
        known.seen_at_ms = now_ms


def end_presence(tables: Tables, application: str, worker: bytes, now_ms: int) -> Worker | None:
    """End a presence and answer it, if there is one that goes on; the first end counts."""
    known = tables.workers.get(worker)
    if known is None or known.presence.application != application or known.departed_at_ms is not None:
        return None
    known.departed_at_ms = now_ms
    return known
