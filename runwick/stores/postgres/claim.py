"""Claim: due jobs are leased to a worker, and begun and charged in the same statement.

    where to look (`marks`) ──▶ claim ──▶ attempts
                                  ├─ not all of them can be taken ──▶ claim_divided: judge them one by one
                                  ├─ nothing there, and a sweep is allowed ──▶ claim once more, from the start
                                  └─ the token has claimed before ──▶ read what that claim still holds

Mostly this is one round trip. A second one comes when the lanes seem empty, when there are expired jobs or larger
payloads than wanted, when an answer was lost, and when this process meets a name for the first time. Where jobs may not
run ahead, the next claim judges at once.
"""

from typing import Final

from runwick.contracts.attempts import CLAIM_MAX_ATTEMPTS, PAYLOAD_INLINE_MAX_BYTES, Claim, ClaimPlan
from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.claims import Maker
from runwick.stores.postgres.leased import attempt_ids, attempts_of, know
from runwick.stores.postgres.marks import Look
from runwick.stores.postgres.names import Intake
from runwick.stores.steps import Preparation, Step, Steps

_INLINE_MAX: Final = packed.number(PAYLOAD_INLINE_MAX_BYTES)


def claim(bound: Bound, plan: ClaimPlan) -> Act[Claim]:
    """Take due jobs under a lease, as the plan says; a plan that is sent again gets what it got."""
    return Act("claim", lambda: _claim(bound, plan))


def _claim(bound: Bound, plan: ClaimPlan) -> Steps[Claim]:
    intake = yield from bound.names.intake(plan.application, plan.lanes, plan.kinds)
    if intake is None:
        return Claim([], None)
    bound.names.serves.add(intake.application)
    look = bound.marks.look(intake.lanes, intake.kinds)
    claim = yield from _look(bound, plan, intake, look)
    if claim.attempts or claim.next_due_in_ms == 0 or look.is_sweep:
        return claim
    sweep = bound.marks.look(intake.lanes, intake.kinds)
    return (yield from _look(bound, plan, intake, sweep)) if sweep.is_sweep else claim


def _look(bound: Bound, plan: ClaimPlan, intake: Intake, look: Look) -> Steps[Claim]:
    """Take what is due there."""
    first_attempt_id = bound.ids.ordered()
    parameters = (
        *bound.gate(),
        packed.number(intake.application),
        packed.Id(plan.claim_token),
        packed.Id(first_attempt_id),
        packed.Id(plan.worker),
        packed.numbers(look.lanes),
        packed.numbers([due_at_ms for due_at_ms, _ in look.behind]),
        packed.ids([job for _, job in look.behind]),
        packed.numbers(tuple(intake.kinds)),
        packed.number(plan.free),
        packed.number(min(plan.free + plan.ahead, CLAIM_MAX_ATTEMPTS)),
        packed.number(plan.payload_bytes),
        packed.number(plan.lease_ms),
        _INLINE_MAX,
    )
    try:
        rows = [] if look.meets_lone else (yield Step("claim", parameters))
        is_divided = not rows or bool(rows[0][2])
        if is_divided:
            rows = yield Step("claim_divided", parameters)
    finally:
        bound.marks.ended(look)
    (now_ms, claimed_before, stopped, saw_all, next_due_at_ms, *_), *taken = rows
    stopped_at_lone = is_divided and stopped
    if claimed_before:
        return (yield from _claimed_before(bound, plan))
    if not taken:
        bound.marks.found(look, now_ms, None, saw_all=saw_all, met_lone=stopped_at_lone)
        next_due_in_ms = None if next_due_at_ms is None else next_due_at_ms - now_ms
        return Claim([], next_due_in_ms, stopped_at_lone)
    due_at_ms, job, lane = taken[-1][5:8]
    bound.marks.found(look, now_ms, (lane, (due_at_ms, job)), saw_all=saw_all, met_lone=stopped_at_lone)
    leased = [row[6:] for row in taken]
    maker = Maker(intake.application, plan.worker, now_ms)
    bound.claims.made(plan.claim_token, [row[0] for row in leased], maker)
    yield from know(bound.names, leased)
    ids = attempt_ids(first_attempt_id, range(1, len(leased) + 1))
    return Claim(attempts_of(bound.names, plan.claim_token, ids, leased), None, stopped_at_lone)


def _claimed_before(bound: Bound, plan: ClaimPlan) -> Steps[Claim]:
    """What a claim still holds whose answer was lost."""
    rows = yield Preparation("claimed_before", (packed.Id(plan.claim_token), _INLINE_MAX))
    if not rows:
        return Claim([], 0)
    held = [row[2:] for row in rows]
    yield from know(bound.names, held)
    ids = attempt_ids(rows[0][0], [row[1] for row in rows])
    bound.claims.made(plan.claim_token, [row[0] for row in held])
    return Claim(attempts_of(bound.names, plan.claim_token, ids, held), None)
