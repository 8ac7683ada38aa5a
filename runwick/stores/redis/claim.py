"""Claim: due jobs are leased to a worker, and begun and charged at once; those that meet a full limit are moved aside.

One call, whatever is concerned; `lua/acts/claim.lua` does all of it. A plan that is sent again gets what it got.
"""

from typing import Final

import msgspec

from runwick.contracts.ambient import Ids
from runwick.contracts.attempts import CLAIM_MAX_ATTEMPTS, Claim, ClaimPlan
from runwick.contracts.stores import Act
from runwick.stores.redis.applications import Applications
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.leased import Leased, attempts_of
from runwick.stores.redis.packed import Legend, LegendRows, arguments, binary, kind_text, lane_text


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    next_due_in_ms: int | None
    stopped_at_lone: bool
    again: bool
    called_in_ms: tuple[int, ...]
    parked: int
    deferred: int
    taken: list[Leased]
    legend: LegendRows


_answered: Final = msgspec.msgpack.Decoder(_Answer).decode


def claim(applications: Applications, plan: ClaimPlan, ids: Ids) -> Act[Claim]:
    """Take due jobs under a lease, as the plan says; a plan that is sent again gets what it got."""
    return Act("claim", lambda: _claim(applications, plan, ids))


def _claim(applications: Applications, plan: ClaimPlan, ids: Ids) -> Calls[Claim]:
    answer = _answered((yield Call("claim", plan.application, _arguments(plan, ids))))
    if answer.taken:
        applications.learn(answer.taken[0].job, plan.application)
    return Claim(
        attempts_of(answer.taken, Legend(answer.legend)),
        answer.next_due_in_ms,
        answer.stopped_at_lone,
        answer.again,
        answer.called_in_ms,
        answer.parked,
        answer.deferred,
    )


def _arguments(plan: ClaimPlan, ids: Ids) -> bytes:
    application = plan.application
    turns = [(lane_text(application, turn.lane), turn.lane.queue, turn.most, turn.waited_ms) for turn in plan.turns]
    return arguments(
        binary(plan.claim_token),
        binary(plan.worker),
        binary(ids.ordered()),
        turns,
        [kind_text(application, kind) for kind in plan.kinds],
        plan.free,
        plan.ahead,
        CLAIM_MAX_ATTEMPTS,
        plan.payload_bytes,
        plan.lease_ms,
    )
