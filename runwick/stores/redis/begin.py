"""Begin: a reserved attempt is authorised to call its handler, charged, and given its payload.

A job that somebody cancelled, or that has expired, ends instead and is charged nothing. Sent again, the act finds the
attempt begun and charges nothing.
"""

from typing import Final

import msgspec

from runwick.contracts.attempts import Attempt, Begun
from runwick.contracts.stores import Act
from runwick.stores.redis.applications import Applications
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.leased import Body
from runwick.stores.redis.packed import arguments, binary

_ENDED: Final = (None, None, "cancel_requested", "expired")
"""Why the job was closed, by what is answered."""


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    what: int
    execution: int
    body: Body | None
    apart: bytes | None


_answered: Final = msgspec.msgpack.Decoder(_Answer).decode


def begin(applications: Applications, attempt: Attempt) -> Act[Begun]:
    """Authorise and charge a reserved attempt and read its payload."""
    return Act("begin", lambda: _begin(applications, attempt))


def _begin(applications: Applications, attempt: Attempt) -> Calls[Begun]:
    for application in (yield from applications.places([attempt.job])):
        answer = _answered((yield Call("begin", application, arguments(attempt.job, binary(attempt.claim_token)))))
        if answer.body is None:
            return Begun(None, _ENDED[answer.what])
        payload = answer.body.payload if answer.apart is None else answer.apart
        return Begun(msgspec.structs.replace(attempt, begun=True, execution=answer.execution, payload=payload))
    return Begun(None)
