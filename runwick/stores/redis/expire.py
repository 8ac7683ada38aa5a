"""Expire: jobs that wait past their expiry end, whether or not anybody serves their lane."""

from typing import Final

import msgspec

from runwick.contracts.stores import Act
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.packed import arguments

_answered: Final = msgspec.msgpack.Decoder(int).decode


def expire(application: str, limit: int) -> Act[int]:
    """Close up to `limit` waiting jobs as expired, the longest expired first; answers how many."""
    return Act("expire", lambda: _expire(application, limit))


def _expire(application: str, limit: int) -> Calls[int]:
    return _answered((yield Call("expire", application, arguments(limit))))
