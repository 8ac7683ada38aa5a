"""Leases and presence: one call renews what a worker holds, tells what it does, and brings back what is asked of it.

::

    out   presence · what executors do · begun marks · stacks
    in    lost and locked leases · cancels · stacks that are asked for · whether to run the recovery pass

An expired lease is never renewed or marked, even while nobody has taken its job yet.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from runwick.contracts.activity import Beat, Mark, Report, StackRequest
from runwick.contracts.attempts import Held, WorkerPresence
from runwick.contracts.stores import Act
from runwick.stores.activities import executors_json, kinds_json
from runwick.stores.controls import LOOK_LASTS_MS
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Step, Steps

PRESENCE_KEPT_MS: Final = 24 * 60 * 60 * 1000
"""A worker that was not seen for this long is forgotten."""

_LOOK_LASTS_MS: Final = packed.number(LOOK_LASTS_MS)
_LOOKS_MAX: Final = packed.number(16)


def renew(bound: Bound, report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int) -> Act[Beat]:
    """Renew the leases still owned, tell what the worker does, and ask what it is to do."""
    return Act("renew", lambda: _renew(bound, report, held, lease_ms, recovery_interval_ms))


def _renew(bound: Bound, report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int) -> Steps[Beat]:
    presence = report.presence
    application = yield from bound.names.make(Wanted(presence.application), "renew")
    rows = yield Step(
        "renew",
        (
            *bound.gate(),
            packed.number(application),
            *_leases(held, report.marks),
            packed.number(lease_ms),
            packed.Id(presence.worker),
            packed.text(presence.host),
            packed.number(presence.process),
            packed.Text(msgspec.json.encode(list(presence.queues))),
            packed.number(presence.executors),
            packed.jsons([] if report.executors is None else [executors_json(report.executors)]),
            packed.ids([answer.attempt_id for answer in report.stacks]),
            packed.texts([answer.text for answer in report.stacks]),
            packed.number(recovery_interval_ms),
            packed.number(PRESENCE_KEPT_MS),
            _LOOK_LASTS_MS,
            _LOOKS_MAX,
            kinds_json(presence.kinds),
        ),
    )
    return _beat(rows)


def _leases(held: Sequence[Held], marks: Sequence[Mark]) -> tuple[packed.Packed, ...]:
    """Jobs, claim tokens and marks of these attempts, each once, those to renew first; and how many these are."""
    leases: dict[tuple[int, bytes], int | None] = {(item.job, item.claim_token): None for item in held}
    renewed = len(leases)
    leases |= {(mark.job, mark.claim_token): mark.begun_at_ms for mark in marks}
    return (
        packed.ids([job.to_bytes(16) for job, _ in leases]),
        packed.ids([claim_token for _, claim_token in leases]),
        packed.numbers(list(leases.values())),
        packed.number(renewed),
    )


def _beat(rows: Sequence[tuple[Any, ...]]) -> Beat:
    by_answer: dict[str, set[int]] = {"lost": set(), "locked": set()}
    recovery_due = False
    cancels, looks = [], []
    for what, job, claim_token, attempt_id in rows:
        if what == "recover":
            recovery_due = True
        elif what == "cancel":
            cancels.append(Held(int.from_bytes(job), claim_token))
        elif what == "look":
            looks.append(StackRequest(attempt_id, int.from_bytes(job), claim_token))
        else:
            by_answer[what].add(int.from_bytes(job))
    return Beat(frozenset(by_answer["lost"]), frozenset(by_answer["locked"]), recovery_due, cancels, looks)


def depart(bound: Bound, presence: WorkerPresence) -> Act[None]:
    """Say good-bye: the presence ends at once."""
    return Act("depart", lambda: _depart(bound, presence))


def _depart(bound: Bound, presence: WorkerPresence) -> Steps[None]:
    application = yield from bound.names.find(Wanted(presence.application))
    number = None if application is None else packed.number(application)
    yield Step("depart", (*bound.gate(), number, packed.Id(presence.worker), packed.flag(True)))
