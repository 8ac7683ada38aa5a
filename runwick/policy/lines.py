"""Who is called out of a limit's line, and when.

A line keeps three ranks and is served by `RANKS`. A job that is called goes back to its lane, where it stood, with no
place reserved: a newcomer may be faster, then it is parked again where it was. **No call is lost**: who was called and
does not take that limit passes the call on. **No promise is lost**: while jobs stand in a window's line, the leaving of
each of its grants is promised to somebody.
"""

from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from runwick.contracts.limits import CALLED_MAX, RANKS
from runwick.contracts.states import Priority
from runwick.policy.lanes import RANK
from runwick.policy.limits import UNUSED_AFTER_MS, Scope, Window

LOOKED_MAX: Final = 1_000
"""Jobs of one rank of a line that one act looks at from its head, where paused queues stand in front. Behind so many it
looks at some more, from where the act before it left that, so that nobody is hidden for good."""

_CALL_RANKS: Final = tuple(RANK[Priority(name)] for name in RANKS)

J = TypeVar("J")
J_co = TypeVar("J_co", covariant=True)


class Called(NamedTuple, Generic[J]):
    """A job that leaves a line for its lane: its `line` is cleared, its `called` is the limit."""

    limit: bytes
    job: J
    due_ms: int | None
    """Its new due time; None leaves the old one, so that it stands where it stood."""


class Line(Protocol[J_co]):
    """The jobs of one limit's line as they stood when the act began, in dispatch order."""

    def take(self, rank: int) -> tuple[bytes, J_co] | None:
        """Id and handle of the next job of a rank (0 high, 1 medium, 2 low) whose queue is not paused; each once. None
        when there is none as far as the act looks."""
        ...

    def empty(self) -> bool:
        """Whether none is left that was not taken, paused or not."""
        ...


class Lines(Protocol[J_co]):
    """Opens lines. It is asked only for limits that have one, and once for each."""

    def __call__(self, limit: bytes, /) -> Line[J_co]: ...


class Calling(Generic[J]):
    """The calls of one act, `CALLED_MAX` of them at most."""

    def __init__(self, lines: Lines[J], now_ms: int) -> None:
        self._lines = lines
        self._open: dict[bytes, Line[J]] = {}
        self._now_ms = now_ms
        self.called: list[Called[J]] = []
        """What it called, in order."""
        self.owed: dict[bytes, int] = {}
        """Limits for which it may call no more although there is room, and for how many more there is; of a window, 0
        where leavings are left to be promised. A further act's `make_up` goes on there."""

    @property
    def left(self) -> int:
        """Calls that this act may still make."""
        return CALLED_MAX - len(self.called)

    def into_scope(self, scope: Scope, count: int) -> None:
        """Call up to `count` jobs of its line: as many as places were freed, and no more. Filling all its room each
        time would call the same room out again and again while nobody claims."""
        while count > 0 and self._next(scope, None) is not None:
            count -= 1
        self._owe(scope, count)

    def into_window(self, window: Window, count: int, due_ms: int) -> int:
        """Call up to `count` jobs of its line into room that it has; answers how many came."""
        came = 0
        while came < count and self._next(window, due_ms) is not None:
            came += 1
        self._owe(window, count - came)
        return came

    def promise(self, window: Window) -> None:
        """Promise the leavings that nobody was promised to the heads of its line."""
        while window.unpromised:
            job_id = self._next(window, self._now_ms)
            if job_id is None:
                self._owe(window, 0, promises=True)
                return
            self.called[-1] = self.called[-1]._replace(due_ms=window.promise(job_id, self._now_ms))

    def pass_on(self, limit: Scope | Window, due_ms: int) -> None:
        """One job that was called or promised a place leaves its lane without taking it (it was cancelled, expired, or
        another limit keeps it out): the next one is called instead, if there is room.

        Args:
            due_ms: when that job was due. A promise is passed on with it.
        """
        if isinstance(limit, Scope):
            self.into_scope(limit, min(1, limit.room))
        elif due_ms > self._now_ms or limit.free(limit.time_ms(self._now_ms), 1):
            came = self.into_window(limit, 1, max(due_ms, self._now_ms))
            if not came and (not limit.has_line or (self.left <= 0 and due_ms > self._now_ms)):
                limit.take_back()

    def make_up(self, limit: Scope | Window, owed: int) -> None:
        """Call what an act before owed to this limit, as far as there is room now, and promise what is left to be
        promised. Needs the slots of `owed` grants."""
        if isinstance(limit, Scope):
            self.into_scope(limit, min(owed, limit.room))
        else:
            self.into_window(limit, limit.free(limit.time_ms(self._now_ms), owed), self._now_ms)
            self.promise(limit)

    def _owe(self, limit: Scope | Window, count: int, *, promises: bool = False) -> None:
        if (count > 0 or promises) and limit.has_line and self.left <= 0:
            self.owed[limit.id] = self.owed.get(limit.id, 0) + count

    def _next(self, limit: Scope | Window, due_ms: int | None) -> bytes | None:
        if not limit.has_line or self.left <= 0:
            return None
        line = self._open.get(limit.id)
        if line is None:
            line = self._open[limit.id] = self._lines(limit.id)
        turn = _CALL_RANKS[limit.calls % len(_CALL_RANKS)]
        ranks = (turn, *(other for other in range(3) if other != turn))
        head = next(filter(None, map(line.take, ranks)), None)
        if line.empty():
            limit.has_line = False
            limit.changed = True
        if head is None:
            return None
        limit.calls += 1
        limit.changed = True
        self.called.append(Called(limit.id, head[1], due_ms))
        return head[0]


def tend_scope(scope: Scope, holds: int, calling: Calling[J]) -> bool:
    """Set right what a crash left behind: the count of its holds, and places that nobody was called for. Answers
    whether the count was wrong, which is a fault."""
    mended = scope.recount(holds)
    calling.into_scope(scope, scope.room)
    return mended


def tend_window(window: Window, now_ms: int, calling: Calling[J]) -> None:
    """As `tend_scope`, for room that was promised to jobs which never came. Needs the slots of `CALLED_MAX` grants."""
    unused = window.free(window.time_ms(now_ms), CALLED_MAX, UNUSED_AFTER_MS)
    calling.into_window(window, unused, now_ms)
    calling.promise(window)
