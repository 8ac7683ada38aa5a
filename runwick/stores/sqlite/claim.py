"""Claim: due jobs are leased to a worker, and begun and charged in the same write.

    choose, with what is handed out ──▶ take all of it in one write
      │                            └─▶ close what has expired
      └─ one has limits ──▶ judge all of them ──▶ also park, promise, call ──▶ read what the taken jobs hand out

The driver begins the transaction before it starts the act, so that the clock is read under the write lock.
"""

from collections.abc import Iterable, Sequence

from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.attempts import Attempt, Claim, ClaimPlan
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.policy.admission import Fate
from runwick.stores.sqlite.choosing import choose
from runwick.stores.sqlite.ending import Endings
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.judging import Judgement, judge, needs_judging
from runwick.stores.sqlite.leased import fenced, json_list, leased
from runwick.stores.sqlite.ready import Waiting, numbers_of, survey, turns_of
from runwick.stores.steps import Step, Steps


def claim(gate: Gate, interned: Interned, plan: ClaimPlan, clock: Clock, ids: Ids) -> Act[Claim]:
    """Take due jobs under a lease, as the plan says; a plan that is sent again gets what it got."""
    return Act("claim", lambda: _claim(gate, interned, plan, clock, ids))


def _claim(gate: Gate, interned: Interned, plan: ClaimPlan, clock: Clock, ids: Ids) -> Steps[Claim]:
    gate.admit("claim", plan.application)
    now_ms = clock.now_ms()
    intake = yield from interned.refresh()
    application = interned.applications.ids.get(plan.application)
    if application is None:
        return Claim([], None)
    known = yield Step("claim_known", (plan.claim_token,))
    if known:
        attempts = yield from _claimed_before(interned, plan, application, *known[0])
        return Claim(attempts, None if attempts else 0)
    turns = plan.turns
    if intake.paused:
        turns = [turn for turn in turns if (application, turn.lane.queue) not in intake.paused]
    lanes = numbers_of(interned, application, (turn.lane for turn in turns))
    waiting = [one for one in (yield from survey(lanes)) if interned.kinds.values[one.kind][1] in plan.kinds]
    due = turns_of(turns, lanes, waiting, now_ms)
    choice, first_attempt_id = None, ids.ordered()
    if not needs_judging(interned, intake, application, due):
        choice = yield from choose(interned, plan, due, now_ms, first_attempt_id)
    if choice is None:
        judgement = yield from judge(interned, intake, application, plan, due, now_ms)
        next_due_in_ms = _next_due_in_ms(waiting, now_ms)
        return (yield from _as_judged(interned, plan, judgement, next_due_in_ms, now_ms, first_attempt_id))
    if choice.expired:
        yield from _expire(choice.expired, now_ms)
    if choice.attempts:
        yield from _take(plan, choice.begun, choice.reserved, now_ms, first_attempt_id)
        return Claim(choice.attempts, None, choice.stopped_at_lone)
    return Claim([], _next_due_in_ms(waiting, now_ms), choice.stopped_at_lone)


def _next_due_in_ms(waiting: Iterable[Waiting], now_ms: int) -> int | None:
    return min((max(0, one.due_at_ms - now_ms) for one in waiting), default=None)


def _as_judged(
    interned: Interned,
    plan: ClaimPlan,
    judgement: Judgement,
    next_due_in_ms: int | None,
    now_ms: int,
    first_attempt_id: bytes,
) -> Steps[Claim]:
    jobs, admitted = judgement.jobs, judgement.admitted
    claim = None
    if judgement.expired:
        yield from _expire(judgement.expired, now_ms)
    if jobs:
        reserved = judgement.reserved
        begun = [job for job in jobs if job not in reserved] if reserved else jobs
        claim = yield from _take(plan, begun, reserved, now_ms, first_attempt_id)
    yield from judgement.write(claim)
    attempts = (yield from fenced((yield from leased(interned, jobs)))) if jobs else []
    return Claim(
        attempts,
        None if attempts else next_due_in_ms,
        admitted.stopped_at_lone,
        admitted.again,
        judgement.alarms(now_ms),
        judgement.count(Fate.PARKED),
        judgement.count(Fate.DEFERRED),
    )


def _take(
    plan: ClaimPlan, begun: Sequence[int], reserved: Sequence[int], now_ms: int, first_attempt_id: bytes
) -> Steps[int]:
    """Lease these, of which the former are begun; answers the claim's number."""
    ((number,),) = yield Step("claim_add", (plan.claim_token, first_attempt_id, plan.worker, now_ms))
    lease = (number, now_ms + plan.lease_ms)
    if begun:
        yield Step("claim_take", (json_list(begun), JobState.RUNNING.value, 1, *lease))
    if reserved:
        yield Step("claim_take", (json_list(reserved), JobState.RESERVED.value, 0, *lease))
    claim: int = number
    return claim


def _expire(jobs: list[int], now_ms: int) -> Steps[None]:
    endings = yield from Endings.opened(now_ms)
    endings.expire(jobs)
    yield from endings.write()


def _claimed_before(interned: Interned, plan: ClaimPlan, application: int, number: int) -> Steps[list[Attempt]]:
    """What claim `number`, whose answer was lost, still holds."""
    rows = yield Step("claimed_before", (application, number))
    rank = {lane: place for place, lane in enumerate(turn.lane for turn in plan.turns)}
    rows.sort(key=lambda row: (rank[interned.lanes.values[row[0]][1]], *row[1:]))
    jobs = [row[3] for row in rows]
    return (yield from fenced((yield from leased(interned, jobs)))) if jobs else []
