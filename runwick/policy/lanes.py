"""Which lanes a pool claims from, in which order, and how many jobs of each.

Every contender (a lane; in the strict modes a queue) has a share of the jobs and a credit: what it should have got so
far, less what it got. The one whose credit is the first to grow to a whole job is the next one. So shares are exact in
the long run, however many jobs one claim takes, and none with work waits much longer than its share says.

A lane is *dry* when it gave less than it could have. Dry lanes have no part in the shares of the others, but each plan
still looks at them: when work comes, they have their share at once.

**Aging**: of every `AGING_CLAIMS` + 1 jobs of a queue at least one comes from its lower lanes, if a job there has been
due for `AGING_MS`. Such turns stand first in their plan. They are made where the ordinary turn of a lower lane would be
too small; a lane's oldest jobs come first in those, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from runwick.contracts.attempts import Attempt, Lane, LaneTurn
from runwick.contracts.policies import AGING_CLAIMS, AGING_MS, LANE_WEIGHTS, LaneSelection
from runwick.contracts.states import Priority

RANK: Final = {Priority.HIGH: 0, Priority.MEDIUM: 1, Priority.LOW: 2}
_ORDERED: Final = tuple(sorted(Priority, key=RANK.__getitem__))


def lanes_of(queues: Iterable[str]) -> list[Lane]:
    """Every lane of these queues: the high lanes of all queues first, then the medium, then the low ones."""
    names = list(queues)
    return [Lane(queue, priority) for priority in _ORDERED for queue in names]


def in_rank_order(attempts: Sequence[Attempt]) -> list[Attempt]:
    """What one claim took, in the order to hand over: each queue keeps its places, and fills them by priority."""
    of_queue: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        of_queue.setdefault(attempt.lane.queue, []).append(attempt)
    fills = {q: iter(sorted(own, key=lambda attempt: RANK[attempt.lane.priority])) for q, own in of_queue.items()}
    return [next(fills[attempt.lane.queue]) for attempt in attempts]


class _Lane:
    __slots__ = ("credit", "dry", "got", "lane", "queue", "share", "silent", "weight")

    def __init__(self, queue: "_Queue", priority: Priority, weight: int) -> None:
        self.queue, self.weight = queue, weight
        self.lane = Lane(queue.name, priority)
        self.share = self.credit = 0.0
        self.got = 0
        self.dry = False
        self.silent = False
        """It gave nothing at all when it was last looked at."""

    def turn(self, most: int, waited_ms: int = 0) -> LaneTurn:
        return LaneTurn(self.lane, most, waited_ms)


class _Queue:
    __slots__ = (
        "aged",
        "came_short",
        "credit",
        "dry",
        "got",
        "lanes",
        "lowest_first",
        "name",
        "share",
        "since_aged",
        "weight",
    )

    def __init__(self, name: str, weight: int, lane_weights: Sequence[int]) -> None:
        self.name, self.weight = name, weight
        self.share = self.credit = 0.0
        self.got = 0
        self.dry = False
        self.lanes = tuple(_Lane(self, *pair) for pair in zip(_ORDERED, lane_weights, strict=True))
        self.since_aged = 0
        """Jobs taken since its lower lanes were last looked at for old ones."""
        self.aged: tuple[tuple[_Lane, LaneTurn], ...] = ()
        """The turns of the last plan that did that."""
        self.lowest_first = True
        self.came_short = False
        """The last claim looked for old jobs and had room left for others: the next one takes any."""


_Turn = tuple[_Lane, LaneTurn]


def _wait(contender: _Lane | _Queue) -> float:
    """After how many more jobs it will have a whole one to its credit."""
    return (1.0 - contender.credit) / contender.share


class Turns:
    """The turns of one pool. One plan at a time: `plan`, claim, `took`."""

    def __init__(
        self,
        queues: Mapping[str, int],
        lane_weights: tuple[int, int, int] = LANE_WEIGHTS,
        selection: LaneSelection = LaneSelection.WEIGHTED,
    ) -> None:
        """
        Args:
            queues: name to weight, in order; weights from 1.
            lane_weights: of the high, medium and low lane; from 1. The strict modes do not use them.
        """
        self._queues = [_Queue(name, weight, lane_weights) for name, weight in queues.items()]
        self._lanes = [lane for queue in self._queues for lane in queue.lanes]
        self._of = {lane.lane: lane for lane in self._lanes}
        self._strict = selection is not LaneSelection.WEIGHTED
        self._ages = selection is not LaneSelection.STRICT
        self._contenders: list[_Lane] | list[_Queue] = self._queues if self._strict else self._lanes
        self._planned: list[_Turn] = []
        self._share_out()

    def plan(self, want: int) -> tuple[LaneTurn, ...]:
        """The turns of a claim that is to take up to `want` jobs, from 1. Together they may allow more: the claim takes
        them in order and ends when it has enough."""
        if self._strict:
            turns = [(lane, lane.turn(want)) for queue in sorted(self._queues, key=_wait) for lane in queue.lanes]
        elif want == 1:
            turns = [(lane, lane.turn(1)) for lane in sorted(self._lanes, key=_wait)]
        else:
            turns = self._quotas(want)
        if self._ages:
            turns = self._with_aging(turns, want)
        self._planned = turns
        return tuple([turn for _, turn in turns])

    def took(self, plan: Sequence[LaneTurn], counts: Mapping[Lane, int], *, cut: bool) -> bool:
        """Hear what came of a plan; answers whether to ask again at once, for lanes with work may be left.

        Args:
            counts: for each lane the jobs taken, and those moved aside.
            cut: the claim did not look at all lanes to their end: it took all it was to take, reached its bytes, moved
                aside all it may, or stopped at a job that may not run ahead.
        """
        self._charge(counts)
        read = len(plan)
        if cut:
            # What stands before the last one that gave was read to its end; of itself and the rest nothing is known.
            read = max((place for place, (lane, _) in enumerate(self._planned) if lane.got), default=0)
        if self._judge(read):
            self._share_out()
        if self._ages:
            self._note_aging(read, cut=cut)
        if cut:
            return False
        # A lane that was looked at for old jobs alone may have others.
        return any(not lane.dry for lane in self._lanes) or any(turn.waited_ms for _, turn in self._planned)

    def _charge(self, counts: Mapping[Lane, int]) -> None:
        """Give every contender its share of what was taken, and take from it what it got."""
        for queue in self._queues:
            queue.got = 0
        for lane in self._lanes:
            lane.got = 0
        for key, got in counts.items():
            lane = self._of[key]
            lane.got = got
            lane.queue.got += got
        wet = total = 0
        for contender in self._contenders:
            total += contender.got
            if not contender.dry:
                wet += contender.got
        for contender in self._contenders:
            contender.credit += contender.share * (total if contender.dry else wet) - contender.got

    def _judge(self, read: int) -> bool:
        """Who is dry; answers whether that changed. A dry contender gets nothing later for what it cannot give now, and
        owes nothing for what it gave before it counted."""
        changed = False
        looked_at: set[_Queue] = set()
        for place, (lane, turn) in enumerate(self._planned):
            if lane.got >= turn.most or (lane.got and place >= read):  # it gave all it might, or until the claim ended
                dry = lane.silent = False
            elif place < read and not turn.waited_ms:
                dry, lane.silent = True, not lane.got
                looked_at.add(lane.queue)
            else:
                continue
            if dry or lane.dry:
                lane.credit = 0.0
            changed |= dry is not lane.dry
            lane.dry = dry
        for queue in self._queues:
            was_dry, queue.dry = queue.dry, all(lane.dry for lane in queue.lanes)
            if (queue in looked_at) if queue.dry else was_dry:
                queue.credit = 0.0
        return changed

    def _share_out(self) -> None:
        """Shares among those that are not dry; a dry one's is what it would have beside them."""
        among_queues = sum(queue.weight for queue in self._queues if not queue.dry)
        for queue in self._queues:
            queue.share = queue.weight / (among_queues + queue.weight * queue.dry)
            among_lanes = sum(lane.weight for lane in queue.lanes if not lane.dry)
            for lane in queue.lanes:
                lane.share = queue.share * lane.weight / (among_lanes + lane.weight * lane.dry)
        # Credits of those that share sum up to nothing; what one left behind that went dry is everybody's by shares.
        left = sum(contender.credit for contender in self._contenders if not contender.dry)
        for contender in self._contenders:
            if not contender.dry:
                contender.credit -= contender.share * left

    def _quotas(self, want: int) -> list[_Turn]:
        """Dry lanes first, each with the share it would have: a dry one costs a look, and a full one cannot hide it.
        Then the others with theirs; whole jobs left over go to those that have waited longest for one."""
        dry = [lane for lane in self._lanes if lane.dry]
        wet = [lane for lane in self._lanes if not lane.dry]
        dry.sort(key=_wait)
        turns = [(lane, lane.turn(max(1, round(lane.share * want)))) for lane in dry]
        quotas: list[int] = []
        waits: list[tuple[float, int]] = []
        left = want
        for place, lane in enumerate(wet):
            due = lane.credit + lane.share * want
            whole = int(due) if due > 0 else 0
            quotas.append(whole)
            left -= whole
            waits.append(((1.0 - due + whole) / lane.share, place))
        if wet and left > 0:
            waits.sort()
            for n in range(left):
                quotas[waits[n % len(waits)][1]] += 1
        turns.extend([(lane, lane.turn(quota)) for lane, quota in zip(wet, quotas, strict=True) if quota])
        return turns

    def _with_aging(self, turns: list[_Turn], want: int) -> list[_Turn]:
        """Before the first turn of a queue whose lower lanes are to be looked at, the turns that do it."""
        aging: dict[_Queue, tuple[_Turn, ...]] = {}
        ordinary: dict[_Lane, int] = {}
        for queue in self._queues:
            queue.aged = ()
            if queue.came_short:
                queue.came_short = False
                continue
            if queue.since_aged + want <= AGING_CLAIMS:
                continue
            if not ordinary and not self._strict:
                # Of a single job the first in turn has the claim; the others stand there in case it has none.
                ordinary = {lane: turn.most for lane, turn in (turns if want > 1 else turns[:1])}
            queue.aged = self._age(queue, ordinary, want)
            if queue.aged:
                aging[queue] = queue.aged
        if not aging:
            return turns
        moved = {lane for aged in aging.values() for lane, _ in aged}
        ordered: list[_Turn] = []
        for lane, turn in turns:
            ordered.extend(aging.pop(lane.queue, ()))
            if lane not in moved:
                ordered.append((lane, turn))
        return ordered

    def _age(self, queue: _Queue, ordinary: Mapping[_Lane, int], want: int) -> tuple[_Turn, ...]:
        """The turns of its lower lanes that stand before the others, where it is time for them."""
        planned = max(1, sum(ordinary.get(lane, 0) for lane in queue.lanes)) if ordinary else want
        need = (queue.since_aged + planned) // (AGING_CLAIMS + 1)
        giving = next((place for place, lane in enumerate(queue.lanes) if not lane.silent), len(queue.lanes))
        lower = queue.lanes[giving + 1 :]
        if not need or not lower:
            return ()
        if queue.lowest_first:
            lower = lower[::-1]
        # Large enough anyway, or not known to give so much, and oldest first: they only have to stand in front.
        kept = [lane for lane in lower if lane in ordinary and (lane.dry or ordinary[lane] >= need)]
        old = [(lane, lane.turn(need, AGING_MS)) for lane in lower if lane not in kept]
        return (*old, *((lane, lane.turn(ordinary[lane])) for lane in kept))

    def _note_aging(self, read: int, *, cut: bool) -> None:
        looked_at = {lane for lane, _ in self._planned[:read]}
        for queue in self._queues:
            if not queue.aged:
                queue.since_aged += queue.got
            elif queue.got or queue.aged[-1][0] in looked_at:
                found = sum(min(lane.got, turn.most) for lane, turn in queue.aged)
                queue.since_aged = min(AGING_CLAIMS, queue.got - (found > 0))
                queue.lowest_first = not queue.lowest_first
                queue.came_short = not cut
