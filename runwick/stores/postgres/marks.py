"""How far this process has looked into each lane, so that a claim need not pass again what was taken before.

What has left a lane stays in its index until it is vacuumed: while somebody's transaction is open, for as long as that
takes. So a claim looks behind a mark::

    ── taken, gone, not decodable ──┤ mark                        now
                                    └──── here a claim looks ──────┤ not due yet

While there is more to take, the mark is the last job that was taken. Once there is nothing left, it stays 250 ms behind
the time, because a job that is due from one moment on may be committed a little later. What comes to stand before a
mark all the same (a job that another process gave back, a slow commit) is found by a sweep: a claim that looks from the
start of every lane. Sweeps take at most one twentieth of the time.

Threads may share the marks: what comes back while a claim is under way is not passed by it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from runwick.contracts.ambient import Clock

Key = tuple[int, bytes]
"""(due_at_ms, job): keys sort in claim order."""

START: Final[Key] = (-1, bytes(16))
"""Before every job of a lane."""

TRAILS_MS: Final = 250
SWEEP_INTERVAL_S: Final = 1.0
"""A sweep is due so long after the last one, whatever claims find."""
SWEEP_REST: Final = 20
"""No sweep begins before so many times the duration of the last one have passed."""

_INTAKES_MAX: Final = 64
"""Of more combinations of kinds than that, all marks are forgotten."""


class Look(NamedTuple):
    """Where one claim looks."""

    intake: "_Intake"
    lanes: Sequence[int]
    behind: Sequence[Key]
    """Per lane, the key behind which it looks."""
    is_sweep: bool
    began_s: float
    lowered: int
    """How often marks were taken back before."""
    meets_lone: bool
    """Whether the last claim was ended by a job that may not run ahead."""


class _Intake:
    """The marks of one combination of kinds."""

    def __init__(self) -> None:
        self.marks: dict[int, Key] = {}
        self.lowered = 0
        self.now_ms = 0
        self.wants_sweep = True
        self.meets_lone = False
        self.swept_s = self.rests_until_s = float("-inf")


class Marks:
    """The marks of one store object, apart for each combination of kinds that is claimed.

    Args:
        clock: counts the time between sweeps.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._intakes: dict[frozenset[int], _Intake] = {}

    def look(self, lanes: Sequence[int], kinds: frozenset[int]) -> Look:
        """Where the next claim of these lanes and kinds is to look; `ended` says that it has."""
        intake = self._intakes.get(kinds)
        if intake is None:
            if len(self._intakes) >= _INTAKES_MAX:
                self._intakes.clear()
            intake = self._intakes[kinds] = _Intake()
        now_s = self._clock.steady_s()
        is_due = intake.wants_sweep or now_s >= intake.swept_s + SWEEP_INTERVAL_S
        is_sweep = is_due and now_s >= intake.rests_until_s
        lowered = intake.lowered
        behind = [START if is_sweep else intake.marks.get(lane, START) for lane in lanes]
        return Look(intake, lanes, behind, is_sweep, now_s, lowered, intake.meets_lone)

    def ended(self, look: Look) -> None:
        """The claim has looked, or failed in it."""
        if look.is_sweep:
            intake = look.intake
            intake.swept_s = self._clock.steady_s()
            intake.rests_until_s = intake.swept_s + SWEEP_REST * (intake.swept_s - look.began_s)

    def found(
        self, look: Look, now_ms: int, last: tuple[int, Key] | None, *, saw_all: bool, met_lone: bool = False
    ) -> None:
        """Move the marks on.

        Args:
            look: where the claim looked.
            now_ms: the store's time at which it did.
            last: lane and key of the last job that it took.
            saw_all: whether it saw everything that is due; otherwise it ended behind `last`.
            met_lone: whether it was ended by a job that may not run ahead.
        """
        intake = look.intake
        intake.meets_lone = met_lone
        intake.wants_sweep = saw_all and not look.is_sweep
        if now_ms < intake.now_ms - TRAILS_MS:  # the store's clock was set back
            intake.marks.clear()
            intake.now_ms = now_ms
        intake.now_ms = max(intake.now_ms, now_ms)
        edge = (now_ms - TRAILS_MS, START[1])
        if saw_all:
            moved = dict.fromkeys(look.lanes, edge)
        elif last is not None:
            lane, key = last
            moved = {**dict.fromkeys(look.lanes[: look.lanes.index(lane)], edge), lane: key}
        else:
            return
        if intake.lowered != look.lowered:
            moved = {lane: min(key, intake.marks.get(lane, START)) for lane, key in moved.items()}
        intake.marks.update(moved)

    def lower(self, lane: int, key: Key) -> None:
        """A job stands in a lane again, at the place that it had."""
        before = (key[0], START[1])
        for intake in tuple(self._intakes.values()):
            intake.lowered += 1
            if intake.marks.get(lane, START) > before:
                intake.marks[lane] = before

    def forget(self) -> None:
        """Look everywhere again."""
        self._intakes.clear()
