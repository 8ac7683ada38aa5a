"""Settle: attempts end in one fenced batch. A claim token that is no longer the row's changes nothing."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.stores import Act
from runwick.stores.sqlite.ending import Endings, under_cancel
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.giving import GivenBack
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import NOBODY, held, json_list
from runwick.stores.steps import Step, Steps

_JOBS_PER_CLAIM_MIN: Final = 8
"""Where a batch has fewer to a claim, to look at each is cheaper."""


def settle(gate: Gate, interned: Interned, settlements: Sequence[Settlement], clock: Clock) -> Act[list[Answer]]:
    """End these attempts; answers in input order. Where a cancel stands, what the settlement says for that is written.
    The same settlement sent again answers DONE and writes nothing.

    Raises (when run):
        SettlementRejected: the content of one cannot be stored, or its job's state does not allow the move; nothing
            of the batch was written.
    """
    return Act("settle", lambda: _settle(gate, interned, settlements, clock))


def _settle(gate: Gate, interned: Interned, settlements: Sequence[Settlement], clock: Clock) -> Steps[list[Answer]]:
    application = yield from _running_in(settlements)
    if application is None:
        return (yield from _settle_each(gate, interned, settlements, clock.now_ms()))
    gate.admit("settle", application)
    endings = yield from Endings.opened(clock.now_ms())
    endings.settle_running(settlements)
    yield from endings.write()
    return [Answer.DONE] * len(settlements)


def _running_in(settlements: Sequence[Settlement]) -> Steps[int | None]:
    """The application in which all of these simply run, each job once and under its own claim; None otherwise.

    So it is nearly always, and then no row is read.
    """
    jobs_of: defaultdict[bytes, list[int]] = defaultdict(list)
    for settlement in settlements:
        attempt = settlement.attempt
        jobs_of[attempt.claim_token].append(attempt.job)
    if len(jobs_of) > 1 + len(settlements) // _JOBS_PER_CLAIM_MIN:
        return None
    found: int | None = None
    for claim_token, jobs in jobs_of.items():
        ((held, application),) = yield Step("held_plainly", (claim_token, json_list(jobs)))
        if held != len(jobs) or held != len(set(jobs)) or found not in (None, application):
            return None
        found = application
    return found


def _settle_each(gate: Gate, interned: Interned, settlements: Sequence[Settlement], now_ms: int) -> Steps[list[Answer]]:
    holdings = yield from held(settlement.attempt for settlement in settlements)
    endings, given_back = (yield from Endings.opened(now_ms)), GivenBack(interned)
    answers: list[Answer] = []
    not_held: list[int] = []
    for place, settlement in enumerate(settlements):
        attempt = settlement.attempt
        claim_token, state, application, cancel_requested_at_ms, holds = holdings.get(attempt.job, NOBODY)
        if claim_token != attempt.claim_token:
            not_held.append(place)
            answers.append(Answer.NOT_YOURS)
            continue
        gate.admit("settle", application)
        del holdings[attempt.job]
        written = settlement if cancel_requested_at_ms is None else under_cancel(settlement)
        endings.settle(state, written)
        given_back.ended(attempt.job, holds)
        answers.append(Answer.DONE if written is settlement else Answer.CANCELLED)
    if not_held:
        # Was the answer to an earlier sending lost? Then it has landed, and this one has nothing to add.
        jobs = json_list(settlements[place].attempt.job for place in not_held)
        landed = {(attempt_id, outcome) for attempt_id, outcome in (yield Step("settled_before", (jobs,)))}
        for place in not_held:
            if not landed.isdisjoint(_ways_to_end(settlements[place])):
                answers[place] = Answer.DONE
    yield from endings.write()
    yield from given_back.call_in(now_ms)
    return answers


def _ways_to_end(settlement: Settlement) -> list[tuple[bytes, str]]:
    """Attempt id and outcome, as the settlement may have been written."""
    ends = (settlement, under_cancel(settlement))
    return [(end.attempt.attempt_id, end.outcome.kind.value) for end in ends]
