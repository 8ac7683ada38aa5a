"""Release: attempts that provably never reached their handler go back as if they had not been claimed.

Charge and number are taken back, holds are freed, no attempt row is left, the job stands where it stood. Only the
revision rises. What its run was charged to in rate windows stays charged. A job that somebody cancelled meanwhile does
not wait again: it ends, uncharged.
"""

from collections.abc import Sequence

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Answer
from runwick.contracts.stores import Act
from runwick.stores.sqlite.ending import Endings
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.giving import GivenBack
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import NOBODY, held, json_list
from runwick.stores.steps import Step, Steps


def release(gate: Gate, interned: Interned, attempts: Sequence[Attempt], clock: Clock) -> Act[list[Answer]]:
    """Give these back; answers in input order. A second time answers NOT_YOURS."""
    return Act("release", lambda: _release(gate, interned, attempts, clock))


def _release(gate: Gate, interned: Interned, attempts: Sequence[Attempt], clock: Clock) -> Steps[list[Answer]]:
    holdings = yield from held(attempts)
    now_ms, given_back = clock.now_ms(), GivenBack(interned)
    answers: list[Answer] = []
    freed: list[int] = []
    cancelled: list[int] = []
    for attempt in attempts:
        claim_token, _, application, cancel_requested_at_ms, holds = holdings.get(attempt.job, NOBODY)
        if claim_token != attempt.claim_token:
            answers.append(Answer.NOT_YOURS)
            continue
        gate.admit("release", application)
        del holdings[attempt.job]
        given_back.ended(attempt.job, holds)
        if cancel_requested_at_ms is None:
            freed.append(attempt.job)
            answers.append(Answer.DONE)
        else:
            cancelled.append(attempt.job)
            answers.append(Answer.CANCELLED)
    if freed:
        yield Step("release", (json_list(freed),))
    if cancelled:
        yield Step("release_charge", (json_list(cancelled),))
        endings = yield from Endings.opened(now_ms)
        endings.cancel(cancelled)
        yield from endings.write()
    yield from given_back.call_in(now_ms)
    return answers
