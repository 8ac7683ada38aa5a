"""What a claim finds: where all of it can be taken, and where jobs are judged one by one.

A judged claim first reads no more of each lane than that may give. If some of it must be moved aside and the claim
comes short of it, nothing is written and it reads `PASSED_MAX` more; the next claim then begins with some of these::

    claim ──▶ not all can be taken ──▶ claim_divided: the claim ends somewhere, some have expired
         └──▶ limits are concerned ──▶ claim_judged ──▶ short? ──▶ claim_judged, with all that may be moved aside
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.limits import PASSED_MAX
from runwick.policy.lanes import RANK
from runwick.stores.postgres import packed
from runwick.stores.postgres.calling import CALLS_MAX, Call
from runwick.stores.postgres.intake import Standing
from runwick.stores.postgres.marks import Key, Look
from runwick.stores.steps import Step, Steps

_MOVED_MAX: Final = packed.number(PASSED_MAX)
_CLAIM_ORDER: Final = itemgetter(0, 1)


class Found(NamedTuple):
    """What a claim found."""

    about: str
    """``now``; or ``claimed_before``, or ``moved``: something else stands in the way than was known. Then it did
    nothing."""
    now_ms: int
    next_due_at_ms: int | None
    taken: Sequence[Sequence[Any]] = ()
    """In claim order, per job due_at_ms and the columns of an attempt under way; of a judged claim, those of its limits
    behind them."""
    seen: Mapping[int, Key | None] = {}
    """As `Marks.found` takes it."""
    judges: str | None = None
    """As the next `Look` has it."""
    spare: int = 0
    stopped: str | None = None
    """``lone``, ``full`` or ``again``."""
    calls: Sequence[Call] = ()
    deferred_to_ms: Sequence[int] = ()
    parked: int = 0

    @property
    def alarms_ms(self) -> list[int]:
        """In how many milliseconds what it called or deferred is due."""
        dues_ms = [*self.deferred_to_ms, *(due_at_ms for lane, due_at_ms, _ in self.calls if lane is not None)]
        return sorted(max(0, due_at_ms - self.now_ms) for due_at_ms in dues_ms)


class Needs(NamedTuple):
    """What lanes and kinds need of their own: ranks in lines, and scopes of queues and types."""

    ranks: packed.Packed
    lane_scopes: packed.Packed
    kinds: packed.Packed
    kind_scopes: packed.Packed
    is_any: bool
    """Whether one of them has a scope."""

    @classmethod
    def of(
        cls, lanes: Sequence[Lane], kinds: Iterable[int], kind_of: Mapping[int, Kind], standing: Standing
    ) -> "Needs":
        lane_scopes = [standing.capped_queues.get(lane.queue) for lane in lanes]
        capped = standing.capped_names
        kind_scopes = {kind: capped[name] for kind in kinds if (name := kind_of[kind].name) in capped} if capped else {}
        return cls(
            packed.numbers([RANK[lane.priority] for lane in lanes]),
            packed.optional_ids(lane_scopes),
            packed.numbers(tuple(kind_scopes)),
            packed.ids(tuple(kind_scopes.values())),
            bool(kind_scopes) or any(lane_scopes),
        )


def plain(look: Look, most: Sequence[int], parameters: Sequence[Any]) -> Steps[Found | None]:
    """Take what can be taken of what is due there; None when limits are concerned, and nothing was done.

    Args:
        look: where.
        most: per lane, how many at most.
        parameters: of ``claim``.
    """
    if look.judges != "divided":
        rows = yield Step("claim", parameters)
        if rows[0][3] is None:
            return _found(look, most, rows)
        if rows[0][3] == "limited":
            return None
    rows = yield Step("claim_divided", parameters)
    return None if rows[0][3] == "limited" else _found(look, most, rows)


def _found(look: Look, most: Sequence[int], rows: Sequence[Sequence[Any]]) -> Found:
    (now_ms, claimed_before, moved, stopped, is_cut, next_due_at_ms, found, *_), *cut_rows = rows
    # One that changed while it was looked for was left alone, and counts in the numbers of the others: so what the
    # claim holds is read, as after a lost answer.
    if claimed_before or len(cut_rows) < found:
        return Found("claimed_before", now_ms, None)
    if moved:
        return Found("moved", now_ms, None)
    taken = [row[7:] for row in cut_rows]
    taken.sort(key=_CLAIM_ORDER)
    if len(look.lanes) > 1:
        places = {lane: place for place, lane in enumerate(look.lanes)}
        taken.sort(key=lambda row: places[row[2]])
    counts = Counter([row[2] for row in taken])
    seen: dict[int, Key | None] = {lane: (due_at_ms, job) for due_at_ms, job, lane, *_ in taken}
    if is_cut is not None:
        last = len(look.lanes) if not is_cut else look.lanes.index(taken[-1][2]) if taken else 0
        for lane, lane_most in list(zip(look.lanes, most, strict=True))[:last]:
            if counts[lane] < lane_most:
                seen[lane] = None
    return Found("now", now_ms, next_due_at_ms, taken, seen, "divided" if stopped else None, stopped=stopped)


def judge(look: Look, needs: Needs, parameters: Sequence[Any]) -> Steps[Found]:
    """Take what can be taken of what is due there, and move aside what meets a full limit.

    Args:
        look: where.
        needs: of its lanes and kinds.
        parameters: of ``claim``.
    """
    most = PASSED_MAX // max(1, len(look.lanes))
    for spare in (min(look.spare, most), most):
        rows = yield Step(
            "claim_judged",
            (
                *parameters,
                needs.ranks,
                needs.lane_scopes,
                needs.kinds,
                needs.kind_scopes,
                packed.number(spare),
                _MOVED_MAX,
                CALLS_MAX,
            ),
        )
        if not any(row[0] == "short" for row in rows):
            break
    return _judged(look, rows)


def _judged(look: Look, rows: Sequence[Sequence[Any]]) -> Found:
    told: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        told.setdefault(row[0], []).append(row)
    about = rows[0][0]
    cut_at = told["cut"][0][1] if "cut" in told else len(look.lanes) + 1
    seen: dict[int, Key | None] = dict.fromkeys(look.lanes[: cut_at - 1])
    for _, number, *_ in told.get("left", []):
        seen.pop(look.lanes[number - 1], None)
    for _, number, due_at_ms, job, *_ in told.get("looked", []):
        lane = look.lanes[number - 1]
        if lane not in seen:
            seen[lane] = due_at_ms, job
    parked = told["parked"][0][1] if "parked" in told else 0
    deferred_to_ms = [row[2] for row in told.get("deferred", [])]
    aside = parked + len(deferred_to_ms)
    stopped = next((stop for stop in ("lone", "full", "again") if stop in told), None)
    return Found(
        about,
        rows[0][1],
        rows[0][2],
        [row[2:] for row in sorted(told.get("taken", []), key=itemgetter(1))],
        seen,
        judges="judged" if "limited" in told else "divided" if stopped == "lone" else None,
        spare=1 << (2 * aside).bit_length() if aside else 0,
        stopped=stopped,
        calls=[(row[4], row[2], row[3]) for row in told.get("called", [])],
        deferred_to_ms=deferred_to_ms,
        parked=parked,
    )
