"""Release: attempts that provably never reached their handler go back as if they had not been claimed.

Charge and number are taken back, no attempt row is left, the job stands where it stood. Only the revision rises.
"""

from collections.abc import Sequence

from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Answer
from runwick.contracts.stores import Act
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.leased import NOBODY, held, json_list
from runwick.stores.steps import Step, Steps


def release(gate: Gate, attempts: Sequence[Attempt]) -> Act[list[Answer]]:
    """Give these back; answers in input order. A second time answers NOT_YOURS."""
    return Act("release", lambda: _release(gate, attempts))


def _release(gate: Gate, attempts: Sequence[Attempt]) -> Steps[list[Answer]]:
    holdings = yield from held(attempts)
    answers: list[Answer] = []
    freed: list[int] = []
    for attempt in attempts:
        claim_token, _, application = holdings.get(attempt.job, NOBODY)
        if claim_token != attempt.claim_token:
            answers.append(Answer.NOT_YOURS)
            continue
        gate.admit("release", application)
        del holdings[attempt.job]
        freed.append(attempt.job)
        answers.append(Answer.DONE)
    if freed:
        yield Step("release", (json_list(freed),))
    return answers
