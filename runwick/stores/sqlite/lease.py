"""Leases and presence: one call renews what a worker holds, says that it lives, and asks for the recovery pass.

An expired lease is never renewed, even while nobody has taken its job yet.
"""

from collections.abc import Sequence

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Beat, Held, WorkerPresence
from runwick.contracts.stores import Act
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned, Naming
from runwick.stores.sqlite.leased import json_list
from runwick.stores.steps import Step, Steps

PRESENCE_KEPT_MS = 24 * 60 * 60 * 1000
"""A worker that was not seen for this long is forgotten."""


def renew(
    gate: Gate,
    interned: Interned,
    presence: WorkerPresence,
    held: Sequence[Held],
    lease_ms: int,
    recovery_interval_ms: int,
    clock: Clock,
) -> Act[Beat]:
    """Renew the leases still owned, tell the worker's presence, and ask whether the recovery pass is due."""
    return Act("renew", lambda: _renew(gate, interned, presence, held, lease_ms, recovery_interval_ms, clock))


def _renew(
    gate: Gate,
    interned: Interned,
    presence: WorkerPresence,
    held: Sequence[Held],
    lease_ms: int,
    recovery_interval_ms: int,
    clock: Clock,
) -> Steps[Beat]:
    gate.admit("renew", presence.application)
    now_ms = clock.now_ms()
    lost: frozenset[int] = frozenset()
    if held:
        rows = yield Step("lease_valid", (json_list(item.job for item in held), now_ms))
        valid = dict(rows)
        lost = frozenset(item.job for item in held if valid.get(item.job) != item.claim_token)
        if kept := [item.job for item in held if item.job not in lost]:
            yield Step("lease_renew", (json_list(kept), now_ms + lease_ms))
    application = yield from Naming(interned).number(interned.applications, presence.application)
    yield Step("presence", _presence(presence, application, now_ms))
    due = yield Step("recovery_pass", (application, now_ms, recovery_interval_ms))
    if due:
        yield Step("presence_forget", (now_ms - PRESENCE_KEPT_MS,))
    return Beat(lost, frozenset(), bool(due))


def depart(gate: Gate, presence: WorkerPresence, clock: Clock) -> Act[None]:
    """Say good-bye: the presence ends at once."""
    return Act("depart", lambda: _depart(gate, presence, clock))


def _depart(gate: Gate, presence: WorkerPresence, clock: Clock) -> Steps[None]:
    gate.admit("depart", presence.application)
    yield Step("presence_depart", (presence.worker, clock.now_ms()))


def _presence(presence: WorkerPresence, application: int, now_ms: int) -> tuple[object, ...]:
    return (
        presence.worker,
        application,
        presence.host,
        presence.process,
        msgspec.json.encode(list(presence.queues)).decode(),
        presence.executors,
        now_ms,
    )
