"""Recover: attempts whose lease ran out, or whose worker is dead, are closed as the policy says.

::

    look at those attempts ──▶ decide ──▶ end those that still are as they were seen
     └─ of a dead worker: look through all leases first, part by part

Between looking and ending nobody is kept from anything: a settlement or renewal that comes in between wins, and a
cancel is found with the row.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Settlement
from runwick.contracts.stores import Act
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.ending import endings, illegal
from runwick.stores.redis.leased import Leased, attempts_of
from runwick.stores.redis.packed import Legend, LegendRows, arguments, binary, optional_binary

_looked: Final = msgspec.msgpack.Decoder(tuple[list[Leased], LegendRows]).decode
_part: Final = msgspec.msgpack.Decoder(tuple[str, list[int]]).decode
_BEGINNING: Final = "0"
"""Of a look through all leases; also what is answered at its end."""
_ended: Final = msgspec.msgpack.Decoder(int).decode


def recover(application: str, decide: Callable[[Attempt], Settlement], limit: int, *, worker: bytes | None) -> Act[int]:
    """Close up to `limit` such attempts of an application, those whose lease ends first; answers how many.

    Args:
        application: whose attempts.
        decide: the settlement of one.
        limit: at most this many.
        worker: one that is dead: its attempts are closed, run out or not, no others, and its presence ends.
    """
    return Act("recover", lambda: _recover(application, decide, limit, worker))


def _recover(application: str, decide: Callable[[Attempt], Settlement], limit: int, worker: bytes | None) -> Calls[int]:
    dead = optional_binary(worker)
    asked = (limit, None) if worker is None else (None, (yield from _held_by(application, worker))[:limit])
    looking = Call("recover_look", application, arguments(*asked), is_preparation=True)
    rows, legend = _looked((yield looking))
    attempts = attempts_of(rows, Legend(legend))
    if not attempts and worker is None:
        return 0
    settlements = [decide(msgspec.structs.replace(attempt, fences=())) for attempt in attempts]
    begun = [attempt.begun for attempt in attempts]
    ended = _ended((yield Call("recover", application, arguments(*endings(settlements), begun, dead))))
    if ended < 0:
        raise illegal(settlements[-ended - 1])
    return ended


def _held_by(application: str, worker: bytes) -> Calls[list[int]]:
    """The numbers of a worker's jobs, those whose lease ends first in front."""
    until_ms: dict[int, int] = {}
    place = _BEGINNING
    while True:
        looking = Call("held_by", application, arguments(binary(worker), place), is_preparation=True)
        place, found = _part((yield looking))
        until_ms |= zip(found[::2], found[1::2], strict=True)
        if place == _BEGINNING:
            return sorted(until_ms, key=lambda number: (until_ms[number], number))
