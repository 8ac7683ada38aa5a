"""Tend: what a crash left behind is set right, limit by limit, and what nobody needs any more is forgotten."""

from typing import Final

import msgspec

from runwick.contracts.limits import Tended
from runwick.contracts.stores import Act
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.packed import arguments, optional_binary

_FORGOTTEN_MAX: Final = 4_000
"""Uniqueness keys that one act forgets; the rest is left to the next one."""

_answered: Final = msgspec.msgpack.Decoder(tuple[int, int, bytes | None]).decode


def tend(application: str, after: bytes | None, limit: int) -> Act[Tended]:
    """Look through up to `limit` limits with a line, from behind `after`: scopes and windows, all by id."""
    return Act("tend", lambda: _tend(application, after, limit))


def _tend(application: str, after: bytes | None, limit: int) -> Calls[Tended]:
    answer = yield Call("tend", application, arguments(optional_binary(after), limit, _FORGOTTEN_MAX))
    return Tended(*_answered(answer))
