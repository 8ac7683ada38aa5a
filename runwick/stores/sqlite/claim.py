"""Claim: due jobs are leased to a worker, and begun and charged in the same write.

    choose, from the index alone ──▶ take all of it in one write ──▶ read what the taken jobs hand out
                                └─▶ close what has expired

The driver begins the transaction before it starts the act, so that the clock is read under the write lock.
"""

from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.attempts import Attempt, Claim, ClaimPlan
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores.sqlite.ending import Endings
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import json_list, leased
from runwick.stores.sqlite.ready import Choice, choose, survey
from runwick.stores.steps import Step, Steps


def claim(gate: Gate, interned: Interned, plan: ClaimPlan, clock: Clock, ids: Ids) -> Act[Claim]:
    """Take due jobs under a lease, as the plan says; a plan that is sent again gets what it got."""
    return Act("claim", lambda: _claim(gate, interned, plan, clock, ids))


def _claim(gate: Gate, interned: Interned, plan: ClaimPlan, clock: Clock, ids: Ids) -> Steps[Claim]:
    gate.admit("claim", plan.application)
    now_ms = clock.now_ms()
    yield from interned.refresh()
    application = interned.applications.ids.get(plan.application)
    if application is None:
        return Claim([], None)
    known = yield Step("claim_known", (plan.claim_token,))
    if known:
        attempts = yield from _claimed_before(interned, plan, application, *known[0])
        return Claim(attempts, None if attempts else 0)
    waiting = [
        one
        for one in (yield from survey(interned, application, plan.lanes))
        if interned.kinds.values[one.kind][1] in plan.kinds
    ]
    choice = yield from choose(plan, waiting, now_ms)
    if choice.expired:
        yield from _expire(choice.expired, now_ms)
    if choice.jobs:
        yield from _take(plan, choice, now_ms, ids.ordered())
        attempts = yield from leased(interned, choice.jobs)
        return Claim(attempts, None, choice.stopped_at_lone)
    next_due_in_ms = min((max(0, one.due_at_ms - now_ms) for one in waiting), default=None)
    return Claim([], next_due_in_ms, choice.stopped_at_lone)


def _take(plan: ClaimPlan, choice: Choice, now_ms: int, first_attempt_id: bytes) -> Steps[None]:
    ((number,),) = yield Step("claim_add", (plan.claim_token, first_attempt_id, plan.worker, now_ms))
    lease = (number, now_ms + plan.lease_ms)
    reserved = set(choice.reserved)
    begun = [job for job in choice.jobs if job not in reserved] if reserved else choice.jobs
    if begun:
        yield Step("claim_take", (json_list(begun), JobState.RUNNING.value, 1, *lease))
    if reserved:
        yield Step("claim_take", (json_list(reserved), JobState.RESERVED.value, 0, *lease))


def _expire(jobs: list[int], now_ms: int) -> Steps[None]:
    endings = yield from Endings.opened(now_ms)
    endings.expire(jobs)
    yield from endings.write()


def _claimed_before(interned: Interned, plan: ClaimPlan, application: int, number: int) -> Steps[list[Attempt]]:
    """What claim `number`, whose answer was lost, still holds."""
    rows = yield Step("claimed_before", (application, number))
    rank = {lane: place for place, lane in enumerate(plan.lanes)}
    rows.sort(key=lambda row: (rank[interned.lanes.values[row[0]][1]], *row[1:]))
    jobs = [row[3] for row in rows]
    return (yield from leased(interned, jobs)) if jobs else []
