"""Leases and presence: one call renews what a worker holds, says that it lives and what it does, hears what is asked of
it, and asks for the recovery pass.

An expired lease is never renewed, even while nobody has taken its job yet; a begun mark counts only under a lease that
holds.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.activity import Beat, Report, StackRequest
from runwick.contracts.attempts import Held, WorkerPresence
from runwick.contracts.stores import Act
from runwick.stores.activities import executors_json, kinds_json
from runwick.stores.controls import LOOK_LASTS_MS
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.packed import arguments, binary

REMEMBERED_MS: Final = 24 * 60 * 60 * 1000
"""A worker that was not seen for this long is forgotten."""

_LOOKS_MAX: Final = 16


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    lost: frozenset[int]
    recovery_due: bool
    cancels: list[tuple[int, bytes]]
    looks: list[tuple[bytes, int, bytes]]


_answered: Final = msgspec.msgpack.Decoder(_Answer).decode


def renew(report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int) -> Act[Beat]:
    """Renew the leases still owned and take the worker's report; answer what it has to know."""
    return Act("renew", lambda: _renew(report, held, lease_ms, recovery_interval_ms))


def _renew(report: Report, held: Sequence[Held], lease_ms: int, recovery_interval_ms: int) -> Calls[Beat]:
    presence = report.presence
    call = Call(
        "renew",
        presence.application,
        arguments(
            *_presence(report),
            [value for item in held for value in (item.job, binary(item.claim_token))],
            [value for mark in report.marks for value in (mark.job, binary(mark.claim_token), mark.begun_at_ms)],
            [value for answer in report.stacks for value in (binary(answer.attempt_id), answer.text)],
            lease_ms,
            recovery_interval_ms,
            LOOK_LASTS_MS,
            REMEMBERED_MS,
            _LOOKS_MAX,
        ),
    )
    answer = _answered((yield call))
    return Beat(
        answer.lost,
        frozenset(),
        answer.recovery_due,
        [Held(*cancel) for cancel in answer.cancels],
        [StackRequest(*look) for look in answer.looks],
    )


def _presence(report: Report) -> tuple[msgspec.Raw | str | int | None, ...]:
    presence = report.presence
    return (
        binary(presence.worker),
        presence.host,
        presence.process,
        msgspec.json.encode(list(presence.queues)).decode(),
        presence.executors,
        kinds_json(presence.kinds),
        None if report.executors is None else executors_json(report.executors).decode(),
    )


def depart(presence: WorkerPresence) -> Act[None]:
    """Say good-bye: the presence ends at once."""
    return Act("depart", lambda: _depart(presence))


def _depart(presence: WorkerPresence) -> Calls[None]:
    yield Call("depart", presence.application, arguments(binary(presence.worker)))
