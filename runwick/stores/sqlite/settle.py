"""Settle: attempts end in one fenced batch. A claim token that is no longer the row's changes nothing."""

from collections.abc import Sequence

from runwick.contracts.ambient import Clock
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.stores import Act
from runwick.stores.sqlite.ending import Endings, under_cancel
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.giving import GivenBack
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import NOBODY, held, json_list
from runwick.stores.steps import Step, Steps


def settle(gate: Gate, interned: Interned, settlements: Sequence[Settlement], clock: Clock) -> Act[list[Answer]]:
    """End these attempts; answers in input order. Where a cancel stands, what the settlement says for that is written.
    The same settlement sent again answers DONE and writes nothing.

    Raises (when run):
        SettlementRejected: the content of one cannot be stored, or its job's state does not allow the move; nothing
            of the batch was written.
    """
    return Act("settle", lambda: _settle(gate, interned, settlements, clock))


def _settle(gate: Gate, interned: Interned, settlements: Sequence[Settlement], clock: Clock) -> Steps[list[Answer]]:
    holdings = yield from held(settlement.attempt for settlement in settlements)
    now_ms = clock.now_ms()
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
