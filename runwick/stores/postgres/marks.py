"""How far this process has looked into each lane, so that a claim need not pass again what was taken before.

What has left a lane stays in its index until it is vacuumed: while somebody's transaction is open, for as long as that
takes. So a claim looks behind a mark::

    ── taken, gone, not decodable ──┤ mark                        now
                                    └──── here a claim looks ──────┤ not due yet

While there is more to take from a lane, its mark is the last job that was looked at. Once there is nothing left, it
stays 250 ms behind the time up to which it was looked for, because a job that is due from one moment on may be
committed a little later. What comes to stand before a mark all the same (a job that another process gave back, a slow
commit) is found by a sweep: a claim that looks from the start of every lane. A lane that it does not come to, because
it has enough before or is another pool's, is *owed* the look from the start: whichever claim comes to it next makes up
for it. Sweeps take at most one twentieth of the time, and so does that.

Threads may share the marks: what comes back while a claim is under way is not passed by it.
"""

from collections.abc import Mapping, Sequence
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
    waited_ms: Sequence[int]
    """Per lane, for how long its jobs must have been due."""
    behind: Sequence[Key]
    """Per lane, the key behind which it looks."""
    is_sweep: bool
    makes_up: bool
    """Some of these lanes are owed a look from the start."""
    began_s: float
    lowered: int
    """How often marks were taken back before."""
    judges: str | None
    """How jobs are to be judged one by one at once, for the last claim met some that need it: ``judged``, with limits;
    ``divided``, without."""
    spare: int
    """How many more than it may take it then reads of each lane: the last claim moved some aside."""


class _Intake:
    """The marks of one combination of kinds."""

    def __init__(self) -> None:
        self.marks: dict[int, Key] = {}
        self.owed: set[int] = set()
        """Lanes that the last sweep did not come to."""
        self.lowered = 0
        self.now_ms = 0
        self.wants_sweep = True
        self.judges: str | None = None
        self.spare = 0
        self.swept_s = self.rests_until_s = float("-inf")


class Marks:
    """The marks of one store object, apart for each combination of kinds that is claimed.

    Args:
        clock: counts the time between sweeps.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._intakes: dict[frozenset[int], _Intake] = {}

    def look(self, lanes: Sequence[int], waited_ms: Sequence[int], kinds: frozenset[int]) -> Look:
        """Where the next claim of these lanes and kinds is to look, as far as jobs have been due for so long; `ended`
        says that it has."""
        intake = self._intakes.get(kinds)
        if intake is None:
            if len(self._intakes) >= _INTAKES_MAX:
                self._intakes.clear()
            intake = self._intakes[kinds] = _Intake()
        now_s = self._clock.steady_s()
        is_due = intake.wants_sweep or now_s >= intake.swept_s + SWEEP_INTERVAL_S
        may_sweep = now_s >= intake.rests_until_s
        is_sweep = is_due and may_sweep
        owed = intake.owed.intersection(lanes) if may_sweep else ()
        lowered = intake.lowered
        behind = [START if is_sweep or lane in owed else intake.marks.get(lane, START) for lane in lanes]
        return Look(intake, lanes, waited_ms, behind, is_sweep, bool(owed), now_s, lowered, intake.judges, intake.spare)

    def ended(self, look: Look) -> None:
        """The claim has looked, or failed in it."""
        if look.is_sweep or look.makes_up:
            intake, now_s = look.intake, self._clock.steady_s()
            intake.rests_until_s = now_s + SWEEP_REST * (now_s - look.began_s)
            if look.is_sweep:
                intake.swept_s = now_s
                intake.owed = {*intake.marks, *look.lanes}

    def found(
        self, look: Look, now_ms: int, seen: Mapping[int, Key | None], *, judges: str | None = None, spare: int = 0
    ) -> None:
        """Move the marks on.

        Args:
            look: where the claim looked.
            now_ms: the store's time at which it did.
            seen: per lane that it looked into, the last job that it looked at; None where it saw all that is due.
            judges, spare: for the next `Look`.
        """
        intake = look.intake
        intake.judges, intake.spare = judges, spare
        if look.is_sweep or look.makes_up:
            intake.owed.difference_update(seen)
        intake.wants_sweep = not look.is_sweep and all(seen.get(lane, START) is None for lane in look.lanes)
        if now_ms < intake.now_ms - TRAILS_MS:  # the store's clock was set back
            intake.marks.clear()
            intake.now_ms = now_ms
        intake.now_ms = max(intake.now_ms, now_ms)
        was_lowered = intake.lowered != look.lowered
        for lane, waited_ms in zip(look.lanes, look.waited_ms, strict=True):
            if lane not in seen:
                continue
            before = intake.marks.get(lane, START)
            key = seen[lane]
            if key is None:
                key = now_ms - waited_ms - TRAILS_MS, START[1]
                if waited_ms:  # what has not waited for so long is none of this claim's business
                    key = max(key, before)
            intake.marks[lane] = min(key, before) if was_lowered else key

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
