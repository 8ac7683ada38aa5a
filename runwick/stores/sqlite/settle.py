"""Settle: attempts end in one fenced batch. A claim token that is no longer the row's changes nothing."""

from collections.abc import Sequence

from runwick.contracts.ambient import Clock
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.stores import Act
from runwick.stores.sqlite.ending import Endings
from runwick.stores.sqlite.interned import Steps
from runwick.stores.sqlite.leased import NOBODY, held


def settle(settlements: Sequence[Settlement], clock: Clock) -> Act[list[Answer]]:
    """End these attempts; answers in input order. A second time answers NOT_YOURS and writes nothing.

    Raises (when run):
        SettlementRejected: the content of one cannot be stored, or its job's state does not allow the move; nothing
            of the batch was written.
    """
    return Act("settle", lambda: _settle(settlements, clock))


def _settle(settlements: Sequence[Settlement], clock: Clock) -> Steps[list[Answer]]:
    holdings = yield from held(settlement.attempt for settlement in settlements)
    endings = yield from Endings.opened(clock.now_ms())
    answers: list[Answer] = []
    for settlement in settlements:
        attempt = settlement.attempt
        claim_token, state = holdings.get(attempt.job, NOBODY)
        if claim_token != attempt.claim_token:
            answers.append(Answer.NOT_YOURS)
            continue
        del holdings[attempt.job]
        endings.settle(state, settlement)
        answers.append(Answer.DONE)
    yield from endings.write()
    return answers
