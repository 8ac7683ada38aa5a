"""How long to wait before something is tried again, and where what is locked waits meanwhile."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from runwick.contracts.ambient import Clock, Dice
from runwick.worker.timings import (
    LOCKED_PAUSE_FIRST_S,
    LOCKED_PAUSE_MAX_S,
    WRITE_REPEAT_FIRST_S,
    WRITE_REPEAT_MAX_S,
    WRITE_REPEAT_SPREAD,
)

T = TypeVar("T")


class Pause:
    """A pause that doubles each time in a row that it is taken."""

    def __init__(self, first_s: float, max_s: float) -> None:
        self._first_s = self._next_s = first_s
        self._max_s = max_s

    def take_s(self) -> float:
        """How long to wait this time."""
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, self._max_s)
        return pause_s

    def reset(self) -> None:
        """It worked: the next pause is the first one again."""
        self._next_s = self._first_s


class Repeats:
    """When a write that failed is sent again: after 1 s, doubling to 30 s, each ± a quarter."""

    def __init__(self, clock: Clock, dice: Dice) -> None:
        self.tries = 0
        """How often in a row it failed."""
        self._clock = clock
        self._dice = dice
        self._pause = Pause(WRITE_REPEAT_FIRST_S, WRITE_REPEAT_MAX_S)
        self._since_s = 0.0
        self._failed_s = 0.0
        self._not_before_s = 0.0

    def failed(self) -> tuple[float, float]:
        """It failed; answers how long to wait, and how long this has been going on."""
        self._failed_s = self._clock.steady_s()
        if not self.tries:
            self._since_s = self._failed_s
        self.tries += 1
        pause_s = self._pause.take_s() * (1 + WRITE_REPEAT_SPREAD * (2 * self._dice.fraction() - 1))
        self._not_before_s = self._failed_s + pause_s
        return pause_s, self._failed_s - self._since_s

    def wait_s(self, now_s: float) -> float:
        """How much of the pause is left."""
        return self._not_before_s - now_s

    def hasten(self) -> None:
        """There is hope: wait no longer than after a first failure."""
        self._not_before_s = min(self._not_before_s, self._failed_s + WRITE_REPEAT_FIRST_S)

    def reset(self) -> None:
        """It was answered."""
        if self.tries:
            self.tries = 0
            self._pause.reset()


class LockedOut(Generic[T]):
    """Writes for rows that somebody's transaction holds. They wait apart, so that the others of their batch go on."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self._pause = Pause(LOCKED_PAUSE_FIRST_S, LOCKED_PAUSE_MAX_S)
        self._until_s = 0.0

    def __len__(self) -> int:
        return len(self._items)

    def answered(self, locked: Iterable[T], now_s: float) -> None:
        """A batch was answered, and these of it were locked. Those that wait already are not held up by them."""
        was_empty = not self._items
        self._items += locked
        if was_empty and self._items:
            self._until_s = now_s + self._pause.take_s()
        elif was_empty:
            self._pause.reset()

    def take(self, now_s: float) -> list[T]:
        """Those whose pause is over, to be written again."""
        if not self._items or now_s < self._until_s:
            return []
        taken, self._items = self._items, []
        return taken

    def wait_s(self, now_s: float) -> float | None:
        """How long until there is something to `take`; None when nothing waits."""
        return max(0.0, self._until_s - now_s) if self._items else None

    def clear(self) -> None:
        """Forget all of them: nothing is written for them any more."""
        self._items.clear()
