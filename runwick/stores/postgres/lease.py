"""Leases and presence: one call renews what a worker holds, says that it lives, and asks for the recovery pass.

An expired lease is never renewed, even while nobody has taken its job yet.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.attempts import Beat, Held, WorkerPresence
from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Step, Steps

PRESENCE_KEPT_MS: Final = 24 * 60 * 60 * 1000
"""A worker that was not seen for this long is forgotten."""


def renew(
    bound: Bound, presence: WorkerPresence, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int
) -> Act[Beat]:
    """Renew the leases still owned, tell the worker's presence, and ask whether the recovery pass is due."""
    return Act("renew", lambda: _renew(bound, presence, held, lease_ms, recovery_interval_ms))


def _renew(
    bound: Bound, presence: WorkerPresence, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int
) -> Steps[Beat]:
    application = yield from bound.names.make(Wanted(presence.application), "renew")
    rows = yield Step(
        "renew",
        (
            *bound.gate(),
            packed.number(application),
            packed.ids([item.job.to_bytes(16) for item in held]),
            packed.ids([item.claim_token for item in held]),
            packed.number(lease_ms),
            packed.Id(presence.worker),
            presence.host,
            packed.number(presence.process),
            msgspec.json.encode(list(presence.queues)).decode(),
            packed.number(presence.executors),
            packed.number(recovery_interval_ms),
            packed.number(PRESENCE_KEPT_MS),
        ),
    )
    by_answer: dict[str, set[int]] = {"lost": set(), "locked": set()}
    recovery_due = False
    for job, answer in rows:
        if answer == "recover":
            recovery_due = True
        else:
            by_answer[answer].add(int.from_bytes(job))
    return Beat(frozenset(by_answer["lost"]), frozenset(by_answer["locked"]), recovery_due)


def depart(bound: Bound, presence: WorkerPresence) -> Act[None]:
    """Say good-bye: the presence ends at once."""
    return Act("depart", lambda: _depart(bound, presence))


def _depart(bound: Bound, presence: WorkerPresence) -> Steps[None]:
    application = yield from bound.names.find(Wanted(presence.application))
    number = None if application is None else packed.number(application)
    yield Step("depart", (*bound.gate(), number, packed.Id(presence.worker)))
