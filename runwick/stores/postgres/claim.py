"""Claim: due jobs are leased to a worker, and begun and charged in the same statement.

    where to look (`marks`), what stands in the way (`intake`) ──▶ claim ──▶ attempts
      ├─ not all of them can be taken, or limits are concerned (`judging`) ──▶ judge them one by one
      ├─ a pause or a cap has come or gone since ──▶ once more, with what stands now
      ├─ nothing there, and a sweep is allowed ──▶ claim once more, from the start
      └─ the token has claimed before ──▶ read what that claim still holds

Mostly this is one round trip. A second one comes when the lanes seem empty, when there are expired jobs or larger
payloads than wanted, when an answer was lost, and when this process meets a name for the first time. Where jobs may not
run ahead or have limits, the next claim judges at once. Queues that are paused are not looked into.
"""

from typing import Final, NamedTuple

from runwick.contracts.attempts import CLAIM_MAX_ATTEMPTS, PAYLOAD_INLINE_MAX_BYTES, Attempt, Claim, ClaimPlan
from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.calling import call_in
from runwick.stores.postgres.claims import Maker
from runwick.stores.postgres.intake import Standing
from runwick.stores.postgres.judging import Found, Needs, judge, plain
from runwick.stores.postgres.leased import COLUMNS, attempt_ids, attempts_of, know, limited_of
from runwick.stores.postgres.marks import Look
from runwick.stores.postgres.names import Intake
from runwick.stores.steps import Preparation, Steps

_INLINE_MAX: Final = packed.number(PAYLOAD_INLINE_MAX_BYTES)


class _Asked(NamedTuple):
    """A plan in numbers, without what is paused, and without names that have no number: these have no jobs either."""

    intake: Intake
    standing: Standing
    lanes: tuple[int, ...]
    most: tuple[int, ...]
    waited_ms: tuple[int, ...]
    needs: Needs


def claim(bound: Bound, plan: ClaimPlan) -> Act[Claim]:
    """Take due jobs under a lease, as the plan says; a plan that is sent again gets what it got."""
    return MakesDue("claim", lambda due: _claim(bound, plan, due))


def _claim(bound: Bound, plan: ClaimPlan, due: Due) -> Steps[Claim]:
    intake = yield from bound.names.intake(plan.application, [turn.lane for turn in plan.turns], plan.kinds)
    if intake is None:
        return Claim([], None)
    bound.names.serves.add(intake.application)
    answer: Claim | None = None
    while True:
        standing = yield from bound.intake.of(intake.application)
        asked = _asked(bound, plan, intake, standing)
        look = bound.marks.look(asked.lanes, asked.waited_ms, intake.kinds)
        if answer is not None and not look.is_sweep:
            return answer
        found_there = yield from _look(bound, plan, asked, look, due)
        if found_there is None:
            bound.intake.forget(intake.application)
            continue
        answer = found_there
        if answer.attempts or answer.next_due_in_ms == 0 or look.is_sweep:
            return answer


def _asked(bound: Bound, plan: ClaimPlan, intake: Intake, standing: Standing) -> _Asked:
    names = bound.names
    turns = [
        (number, turn)
        for turn in plan.turns
        if turn.lane.queue not in standing.paused
        and (number := names.lanes.get((intake.application, turn.lane))) is not None
    ]
    needs = Needs.of([turn.lane for _, turn in turns], intake.kinds, names.kind_of, standing)
    lanes = tuple(number for number, _ in turns)
    return _Asked(
        intake,
        standing,
        lanes,
        tuple(turn.most for _, turn in turns),
        tuple(turn.waited_ms for _, turn in turns),
        needs,
    )


def _look(bound: Bound, plan: ClaimPlan, asked: _Asked, look: Look, due: Due) -> Steps[Claim | None]:
    """Take what is due there; None when something else stands in the way than was known."""
    first_attempt_id = bound.ids.ordered()
    parameters = (
        *bound.gate(),
        packed.number(asked.intake.application),
        packed.Id(plan.claim_token),
        packed.Id(first_attempt_id),
        packed.Id(plan.worker),
        packed.numbers(look.lanes),
        packed.numbers([due_at_ms for due_at_ms, _ in look.behind]),
        packed.ids([job for _, job in look.behind]),
        packed.numbers(tuple(asked.intake.kinds)),
        packed.number(plan.free),
        packed.number(min(plan.free + plan.ahead, CLAIM_MAX_ATTEMPTS)),
        packed.number(plan.payload_bytes),
        packed.number(plan.lease_ms),
        _INLINE_MAX,
        packed.numbers(asked.most),
        packed.numbers(asked.waited_ms),
        packed.number(asked.standing.revision),
    )
    try:
        what = None
        if look.judges != "judged" and not asked.needs.is_any:
            what = yield from plain(look, asked.most, parameters)
        if what is None:
            what = yield from judge(look, asked.needs, parameters)
    finally:
        bound.marks.ended(look)
    if what.about != "now":
        return None if what.about == "moved" else (yield from _claimed_before(bound, plan))
    bound.marks.found(look, what.now_ms, what.seen, judges=what.judges, spare=what.spare)
    call_in(bound, what.calls, due)
    attempts = yield from _attempts(bound, plan, asked, first_attempt_id, what)
    next_due_at_ms = None if attempts else what.next_due_at_ms
    return Claim(
        attempts,
        None if next_due_at_ms is None else max(0, next_due_at_ms - what.now_ms),
        what.stopped == "lone",
        what.stopped == "again",
        what.alarms_ms,
        what.parked,
        len(what.deferred_to_ms),
    )


def _attempts(
    bound: Bound, plan: ClaimPlan, asked: _Asked, first_attempt_id: bytes, what: Found
) -> Steps[list[Attempt]]:
    """Those that were taken."""
    if not what.taken:
        return []
    leased = [row[1:COLUMNS] for row in what.taken]
    maker = Maker(asked.intake.application, plan.worker, what.now_ms)
    bound.claims.made(plan.claim_token, [row[0] for row in leased], maker)
    yield from know(bound.names, leased)
    ids = attempt_ids(first_attempt_id, range(1, len(leased) + 1))
    attempts = attempts_of(bound.names, plan.claim_token, ids, leased)
    return limited_of(attempts, [row[COLUMNS:] for row in what.taken])


def _claimed_before(bound: Bound, plan: ClaimPlan) -> Steps[Claim]:
    """What a claim still holds whose answer was lost."""
    rows = yield Preparation("claimed_before", (packed.Id(plan.claim_token), _INLINE_MAX))
    if not rows:
        return Claim([], 0)
    held = [row[2 : COLUMNS + 1] for row in rows]
    yield from know(bound.names, held)
    ids = attempt_ids(rows[0][0], [row[1] for row in rows])
    bound.claims.made(plan.claim_token, [row[0] for row in held])
    attempts = attempts_of(bound.names, plan.claim_token, ids, held)
    return Claim(limited_of(attempts, [row[COLUMNS + 1 :] for row in rows]), None)
