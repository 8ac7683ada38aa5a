"""Release: attempts that provably never reached their handler go back as if they had not been claimed.

Charge and number are taken back, holds are freed, no attempt row is left, the job stands where it stood. Only the
revision rises. What its run was charged to in rate windows stays charged. One that somebody cancelled meanwhile ends
instead.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Answer
from runwick.contracts.stores import Act
from runwick.stores.redis.applications import Applications
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.packed import arguments, binary

_ANSWERS: Final = (Answer.NOT_YOURS, Answer.DONE, Answer.CANCELLED)
_answered: Final = msgspec.msgpack.Decoder(list[int]).decode


def release(applications: Applications, attempts: Sequence[Attempt]) -> Act[list[Answer]]:
    """Give these back; answers in input order. A second time answers NOT_YOURS."""
    return Act("release", lambda: _release(applications, attempts))


def _release(applications: Applications, attempts: Sequence[Attempt]) -> Calls[list[Answer]]:
    answers = [Answer.NOT_YOURS] * len(attempts)
    of_applications = yield from applications.places([attempt.job for attempt in attempts])
    for application, places in of_applications.items():
        given = [(attempts[place].job, binary(attempts[place].claim_token)) for place in places]
        answer = yield Call("release", application, arguments(given))
        for place, what in zip(places, _answered(answer), strict=True):
            answers[place] = _ANSWERS[what]
    return answers
