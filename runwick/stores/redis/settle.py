"""Settle: attempts end in one fenced batch. A claim token that is no longer the row's changes nothing.

One call, whatever is concerned; `lua/acts/settle.lua` does all of it. A batch with attempts of several applications is
one call for each of them.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.stores import Act
from runwick.stores.redis.applications import Applications
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.ending import endings, illegal
from runwick.stores.redis.packed import arguments, binary

_ANSWERS: Final = (Answer.DONE, Answer.CANCELLED, Answer.NOT_YOURS)
_answered: Final = msgspec.msgpack.Decoder(list[int] | int).decode


def settle(applications: Applications, settlements: Sequence[Settlement]) -> Act[list[Answer]]:
    """End these attempts; answers in input order. The same settlement sent again answers DONE and writes nothing.

    Raises (when run):
        SettlementRejected: the content of one cannot be stored, or its job's state does not allow the move; nothing
            of the batch was written.
    """
    return Act("settle", lambda: _settle(applications, settlements))


def _settle(applications: Applications, settlements: Sequence[Settlement]) -> Calls[list[Answer]]:
    answers = [Answer.NOT_YOURS] * len(settlements)
    places_of = yield from applications.places(settlement.attempt.job for settlement in settlements)
    calls = {
        application: _arguments([settlements[place] for place in places]) for application, places in places_of.items()
    }
    for application, places in places_of.items():
        answered = _answered((yield Call("settle", application, calls[application])))
        if isinstance(answered, int):
            raise illegal(settlements[places[answered - 1]])
        for place, answer in zip(places, answered, strict=True):
            answers[place] = _ANSWERS[answer]
    return answers


def _arguments(settlements: Sequence[Settlement]) -> bytes:
    ids = b"".join([settlement.attempt.attempt_id for settlement in settlements])
    return arguments(*endings(settlements), binary(ids))
