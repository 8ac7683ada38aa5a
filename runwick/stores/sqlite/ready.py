"""Which waiting jobs a claim may take, in claim order, decided from the index alone.

::

    survey ── which kinds wait in the plan's lanes, and since when      (one jump per kind, whatever waits)
      │
    ready ─── turn by turn: the due jobs of the decodable kinds, merged into one order, until the plan is full

A kind that the worker cannot decode is never read, so no number of such jobs stands in front of a lane. The work is
bounded by the plan and by the number of kinds that wait, never by the number of jobs.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from runwick.contracts.attempts import Lane, LaneTurn
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import json_list
from runwick.stores.steps import Step, Steps

_CHUNK_MIN: Final = 8
NO_LANE: Final = 0
"""The number of a lane that nobody has used."""
_FRONT: Final = (-1, b"")
"""Before every entry of a lane."""

Entry = tuple[int, bytes, int, int, int, int | None, int]
"""(due_at_ms, job_id, job, ahead, payload_bytes, expires_at_ms, limited) of a waiting job; they sort in claim order."""


RESOURCES: Final = 1
WINDOWED: Final = 2
"""What `limited` says of a job that needs resources, and of one with rate windows."""


class Waiting(NamedTuple):
    """One kind that waits in a lane."""

    lane: int
    kind: int
    due_at_ms: int
    """When its first job is due."""


class Turn(NamedTuple):
    """One turn of a plan, as far as it may be claimed from."""

    lane: int
    kinds: list[int]
    """Decodable ones that wait there and are due."""
    due_by_ms: int
    most: int


def numbers_of(interned: Interned, application: int, lanes: Iterable[Lane]) -> list[int]:
    """The numbers of these lanes, in their order; `NO_LANE` for those that nobody has used."""
    ids = interned.lanes.ids
    return [ids.get((application, lane), NO_LANE) for lane in lanes]


def survey(lanes: Sequence[int]) -> Steps[list[Waiting]]:
    """What waits in the lanes with these numbers, in their order."""
    rows = yield Step("claim_survey", (json_list(lanes),))
    rank = {number: place for place, number in enumerate(lanes)}
    return sorted(map(Waiting._make, rows), key=lambda waiting: rank[waiting.lane])


def turns_of(turns: Sequence[LaneTurn], lanes: Sequence[int], waiting: Iterable[Waiting], now_ms: int) -> list[Turn]:
    """What each turn of a plan may take of `waiting`, which is decodable; `lanes` are the turns' numbers."""
    found = [Turn(lane, [], now_ms - turn.waited_ms, turn.most) for turn, lane in zip(turns, lanes, strict=True)]
    by_lane = {turn.lane: turn for turn in found}
    for one in waiting:
        turn = by_lane[one.lane]
        if one.due_at_ms <= turn.due_by_ms:
            turn.kinds.append(one.kind)
    return found


def ready(turn: Turn, wanted: int) -> Steps[list[Entry]]:
    """The first `wanted` due entries of a turn."""
    lane, kinds, due_by_ms, _ = turn
    if len(kinds) == 1:
        only: list[Entry] = yield Step("claim_ready", (lane, kinds[0], due_by_ms, *_FRONT, wanted))
        return only
    # Every kind is read in chunks. What sorts up to the end of each chunk that may have a successor is final; the
    # kind that bounds it is read on.
    size = max(_CHUNK_MIN, wanted // len(kinds))
    ends = dict.fromkeys(kinds, _FRONT)
    bound: tuple[int, bytes] | None = _FRONT
    entries: list[Entry] = []
    while bound is not None and sum(entry[:2] <= bound for entry in entries) < wanted:
        for kind in [kind for kind, end in ends.items() if end == bound]:
            chunk: list[Entry] = yield Step("claim_ready", (lane, kind, due_by_ms, *bound, size))
            entries += chunk
            if len(chunk) == size:
                ends[kind] = chunk[-1][:2]
            else:
                del ends[kind]
        bound = min(ends.values(), default=None)
    entries.sort()
    return entries[:wanted]
