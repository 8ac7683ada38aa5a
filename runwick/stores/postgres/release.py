"""Release: attempts that provably never reached their handler go back as if they had not been claimed.

Charge and number are taken back, no attempt row is left, the job stands where it stood. Only the revision rises. Who
waits in line for what they held is called; what was charged to rate windows stays charged. A job that somebody
cancelled meanwhile ends instead.
"""

from collections.abc import Sequence

from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Answer
from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.calling import CALLS_MAX, call_in
from runwick.stores.postgres.ending import forget, tokens_of
from runwick.stores.steps import Step, Steps


def release(bound: Bound, attempts: Sequence[Attempt]) -> Act[list[Answer]]:
    """Give these back; answers in input order. A second time answers NOT_YOURS."""
    return MakesDue("release", lambda due: _release(bound, attempts, due))


def _release(bound: Bound, attempts: Sequence[Attempt], due: Due) -> Steps[list[Answer]]:
    jobs = packed.ids([attempt.job_id for attempt in attempts])
    rows = yield Step("release", (*bound.gate(), jobs, packed.ids(tokens_of(attempts)), CALLS_MAX))
    answers = [Answer.NOT_YOURS] * len(attempts)
    for place, answer, *_ in rows:
        if place is not None:
            answers[place - 1] = Answer(answer)
    call_in(bound, (tuple(row[2:]) for row in rows if row[1] in ("called", Answer.DONE)), due)
    forget(bound, attempts, answers)
    return answers
