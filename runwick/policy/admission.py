"""Which of a claim's candidates are taken, and which wait in the line of a limit.

::

                 expired ──▶ closed        a scope is full ──▶ parked in its line
    candidate ──────────────────────────────────────────────────────────────────────────────
    in order     a window is full ──▶ due when a grant leaves, or parked in its line once
                 each has been promised          no executor for it ──▶ the claim ends here
                 else ──▶ taken: holds its scopes, and its run is charged to its windows

Everything is judged under the locks of the limits concerned: scopes by id, then windows by id, then a window's slots.
A store reads the rows, calls in here, and writes back what `changed`.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from runwick.contracts.limits import PASSED_MAX
from runwick.policy.limits import Scope, Window
from runwick.policy.lines import Called, Calling, Lines


class Candidate(NamedTuple):
    """A due job that this worker can decode, as it stands in its lane."""

    turn: int
    """Which turn of the plan it came from."""
    job_id: bytes
    payload_bytes: int
    lone: bool
    """It may not run ahead for its own sake; limits make it lone, too."""
    expired: bool
    called: bytes | None
    """The limit that it was last called in for, or promised a place of."""
    scopes: Sequence[bytes]
    """Of its resources, its queue and its type, as far as they exist: distinct, ascending."""
    rates: Sequence[bytes]
    """Its windows: distinct, ascending."""


class Fate(enum.Enum):
    """What becomes of a candidate."""

    TAKEN = enum.auto()
    EXPIRED = enum.auto()
    """To be closed. It counts towards what the claim may take."""
    PARKED = enum.auto()
    DEFERRED = enum.auto()


class Verdict(NamedTuple):
    """About one candidate. What of its row a fate does not name stays as it is; TAKEN and EXPIRED alone raise the
    revision. TAKEN clears `called`."""

    place: int
    """Which candidate, from 0."""
    fate: Fate
    limit: bytes | None = None
    """PARKED: in whose line it stands; `called` is cleared. DEFERRED: its new `called`."""
    due_ms: int | None = None
    """DEFERRED: its new due time."""
    fences: Sequence[tuple[bytes, int]] = ()
    """TAKEN: scope and token, ascending by scope. It holds all its scopes."""


J = TypeVar("J")


class Admitted(NamedTuple, Generic[J]):
    """What came of a claim's candidates."""

    verdicts: Sequence[Verdict]
    """In order of place. A candidate without one was not judged: it stays as it is."""
    called: Sequence[Called[J]]
    stopped_at_lone: bool
    again: bool
    """There may be more to take behind what was moved aside."""


def candidates_per_turn(most: Sequence[int], want: int) -> list[int]:
    """How many candidates to read from each turn of a plan, in claim order: what may be taken, and some that may have
    to be moved aside; `PASSED_MAX` of those in all."""
    spare = PASSED_MAX // max(1, len(most))
    return [min(each, want) + spare for each in most]


def admit(
    candidates: Sequence[Candidate],
    scopes: Mapping[bytes, Scope],
    windows: Mapping[bytes, Window],
    lines: Lines[J],
    *,
    most: Sequence[int],
    want: int,
    free: int,
    room_bytes: int,
    now_ms: int,
) -> Admitted[J]:
    """Judge a claim's candidates; scopes and windows change.

    Args:
        candidates: in claim order, `candidates_per_turn` of each turn.
        scopes, windows: all that the candidates need or were called in for, locked. A window has the slots read that
            `Window.slots_needed` names for the number of its candidates.
        most: of each turn of the plan.
        want: jobs to take or to close, at most.
        free: executors that wait; behind them only what may run ahead is taken.
        room_bytes: what payloads may come to; the first one always fits.
        now_ms: the store's time, read when the locks were held.
    """
    judging = _Judging(candidates, scopes, windows, most, now_ms)
    judging.judge(want, free, room_bytes)
    calling = Calling(lines, now_ms)
    for limit_id, due_ms in judging.passed_on:
        limit = scopes.get(limit_id) or windows.get(limit_id)
        if limit is not None:
            calling.pass_on(limit, due_ms)
    for window_id in sorted(judging.charged | judging.refused.keys()):
        judging.defer(windows[window_id], calling)
    verdicts = sorted(judging.verdicts, key=lambda verdict: verdict.place)
    return Admitted(verdicts, calling.called, judging.stopped_at_lone, judging.again(want))


class _Judging:
    """One claim's candidates on their way."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        scopes: Mapping[bytes, Scope],
        windows: Mapping[bytes, Window],
        most: Sequence[int],
        now_ms: int,
    ) -> None:
        self._candidates, self._scopes, self._windows, self._most = candidates, scopes, windows, most
        self._now_ms = now_ms
        self._times_ms = {window_id: window.time_ms(now_ms) for window_id, window in windows.items()}
        self._taken = [0] * len(most)
        self._moved = [0] * len(most)
        self._ended = False
        self.verdicts: list[Verdict] = []
        self.refused: dict[bytes, list[int]] = {}
        """Window to the places of those that it refused."""
        self.charged: set[bytes] = set()
        self.passed_on: list[tuple[bytes, int]] = []
        """Limits whose called jobs went elsewhere, and when those were due: now."""
        self.stopped_at_lone = False

    def judge(self, want: int, free: int, room_bytes: int) -> None:
        taken = finished = 0
        for place, candidate in enumerate(self._candidates):
            if self._taken[candidate.turn] >= self._most[candidate.turn]:
                continue
            if taken + finished >= want:
                self._ended = True
                return
            if candidate.expired:
                self.verdicts.append(Verdict(place, Fate.EXPIRED))
                self._taken[candidate.turn] += 1
                finished += 1
                self._leave(candidate, None)
            elif self._kept_out(place, candidate):
                self._moved[candidate.turn] += 1
                if sum(self._moved) >= PASSED_MAX:
                    return
            else:
                lone = candidate.lone or candidate.scopes or candidate.rates
                room_bytes -= candidate.payload_bytes
                if taken >= free and lone:
                    self.stopped_at_lone = self._ended = True
                    return
                if room_bytes < 0 and taken:
                    self._ended = True
                    return
                self._take(place, candidate)
                taken += 1

    def _kept_out(self, place: int, candidate: Candidate) -> bool:
        """Scopes first: whom a scope keeps out uses up no promise; whom a window keeps out takes no place."""
        full = next((each for each in candidate.scopes if not self._scopes[each].room), None)
        if full is not None:
            self._park(place, self._scopes[full])
        else:
            full = next((each for each in candidate.rates if not self._has_room(each)), None)
            if full is None:
                return False
            self.refused.setdefault(full, []).append(place)
        self._leave(candidate, full)
        return True

    def _has_room(self, window_id: bytes) -> bool:
        return self._windows[window_id].free(self._times_ms[window_id], 1) == 1

    def _park(self, place: int, limit: Scope | Window) -> None:
        if not limit.has_line:
            limit.has_line = limit.changed = True
        self.verdicts.append(Verdict(place, Fate.PARKED, limit.id))

    def _leave(self, candidate: Candidate, limit: bytes | None) -> None:
        if candidate.called is not None and candidate.called != limit:
            self.passed_on.append((candidate.called, self._now_ms))

    def _take(self, place: int, candidate: Candidate) -> None:
        tokens = [(each, self._scopes[each].take()) for each in candidate.scopes]
        for window_id in candidate.rates:
            self._windows[window_id].grant(self._times_ms[window_id])
            self.charged.add(window_id)
        fences = tuple((scope, token) for scope, token in tokens if token is not None)
        self.verdicts.append(Verdict(place, Fate.TAKEN, fences=fences))
        self._taken[candidate.turn] += 1

    def defer(self, window: Window, calling: Calling[J]) -> None:
        """Promise leavings: to the line's heads first, then to those that were refused now; the rest is parked."""
        calling.promise(window)
        cut_short = window.has_line and calling.left == 0
        for place in self.refused.get(window.id, ()):
            if window.unpromised and not cut_short:
                due_ms = window.promise(self._candidates[place].job_id, self._now_ms)
                self.verdicts.append(Verdict(place, Fate.DEFERRED, window.id, due_ms))
            else:
                self._park(place, window)

    def again(self, want: int) -> bool:
        """Whether a turn was read as far as it goes at once, and gave less than it may for what was moved aside."""
        if self._ended:
            return False
        read = [0] * len(self._most)
        for candidate in self._candidates:
            read[candidate.turn] += 1
        spans = zip(read, candidates_per_turn(self._most, want), self._moved, self._taken, self._most, strict=True)
        return sum(self._moved) >= PASSED_MAX or any(
            count >= span and moved and taken < most for count, span, moved, taken, most in spans
        )
