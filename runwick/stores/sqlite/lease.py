"""Leases and presence: one call renews what a worker holds, tells what it does, and brings back what is asked of it.

::

    out   presence · what executors do · begun marks · stacks
    in    lost leases · cancels · stacks that are asked for · whether to run the recovery pass

An expired lease is never renewed or marked, even while nobody has taken its job yet.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.activity import Beat, Mark, Report, StackRequest
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Held, WorkerPresence
from runwick.contracts.stores import Act
from runwick.stores.activities import executors_json, kinds_json
from runwick.stores.controls import LOOK_LASTS_MS
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned, Naming
from runwick.stores.sqlite.leased import json_list
from runwick.stores.steps import Step, Steps

PRESENCE_KEPT_MS = 24 * 60 * 60 * 1000
"""A worker that was not seen for this long is forgotten."""

_LOOKS_MAX: Final = 16


def renew(
    gate: Gate,
    interned: Interned,
    report: Report,
    held: Sequence[Held],
    lease_ms: int,
    recovery_interval_ms: int,
    clock: Clock,
) -> Act[Beat]:
    """Renew the leases still owned, tell what the worker does, and ask what it is to do."""
    return Act("renew", lambda: _renew(gate, interned, report, held, lease_ms, recovery_interval_ms, clock))


def _renew(
    gate: Gate,
    interned: Interned,
    report: Report,
    held: Sequence[Held],
    lease_ms: int,
    recovery_interval_ms: int,
    clock: Clock,
) -> Steps[Beat]:
    presence = report.presence
    gate.admit("renew", presence.application)
    now_ms = clock.now_ms()
    lost: frozenset[int] = frozenset()
    if held or report.marks:
        lost = yield from _renew_leases(held, report.marks, now_ms, lease_ms)
    application = yield from Naming(interned).number(interned.applications, presence.application)
    yield from _tell(report, application, now_ms)
    due = yield Step("recovery_pass", (application, now_ms, recovery_interval_ms))
    if due:
        yield Step("presence_forget", (now_ms - PRESENCE_KEPT_MS,))
    cancels = yield Step("cancels", (application, presence.worker))
    looks = yield Step("looks", (presence.worker, now_ms - LOOK_LASTS_MS, _LOOKS_MAX))
    return Beat(
        lost,
        frozenset(),
        bool(due),
        [Held(job, claim_token) for job, claim_token in cancels],
        [StackRequest(attempt_id, job, claim_token) for attempt_id, job, claim_token in looks],
    )


def _renew_leases(held: Sequence[Held], marks: Sequence[Mark], now_ms: int, lease_ms: int) -> Steps[frozenset[int]]:
    """Renew and mark what is still the worker's; answers which of `held` is not."""
    asked = {*(item.job for item in held), *(mark.job for mark in marks)}
    valid = dict((yield Step("lease_valid", (json_list(asked), now_ms))))
    lost = frozenset(item.job for item in held if valid.get(item.job) != item.claim_token)
    if kept := [item.job for item in held if item.job not in lost]:
        yield Step("lease_renew", (json_list(kept), now_ms + lease_ms))
    if begun := [(mark.job, mark.begun_at_ms) for mark in marks if valid.get(mark.job) == mark.claim_token]:
        yield Step("lease_mark", begun, many=True)
    return lost


def _tell(report: Report, application: int, now_ms: int) -> Steps[None]:
    """Write down that the worker lives, what its executors do, and the stacks that it was asked for."""
    worker = report.presence.worker
    yield Step("presence", _presence(report.presence, application, now_ms))
    if report.executors is not None:
        yield Step("activity", (worker, now_ms, executors_json(report.executors).decode()))
    if report.stacks:
        answers = [(answer.attempt_id, worker, now_ms, answer.text) for answer in report.stacks]
        yield Step("look_answer", answers, many=True)


def depart(gate: Gate, presence: WorkerPresence, clock: Clock) -> Act[None]:
    """Say good-bye: the presence ends at once."""
    return Act("depart", lambda: _depart(gate, presence, clock))


def _depart(gate: Gate, presence: WorkerPresence, clock: Clock) -> Steps[None]:
    gate.admit("depart", presence.application)
    yield Step("presence_depart", (presence.worker, presence.application, clock.now_ms()))


def _presence(presence: WorkerPresence, application: int, now_ms: int) -> tuple[object, ...]:
    return (
        presence.worker,
        application,
        presence.host,
        presence.process,
        msgspec.json.encode(list(presence.queues)).decode(),
        presence.executors,
        now_ms,
        kinds_json(presence.kinds),
    )
