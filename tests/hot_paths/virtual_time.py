"""Time that passes only while everybody waits, for one event loop and the executors that it plays.

    the loop waits ─▶ executors take what is there ─▶ something is readable ─▶ the loop goes on, no time has passed
                                                    └ nothing is ─▶ time goes on to what is due next: a timer of the
                                                                    loop's, or the end of a run, which rings its bell

Whatever happens there happens in the same order on every machine, however slow it is.
"""

import asyncio
import contextlib
import selectors
from collections.abc import Callable, Iterator
from typing import Final, Protocol
from unittest import mock

BEGIN_S: Final = 1_750_000_000.0
_NANO: Final = 1_000_000_000


class Player(Protocol):
    """Somebody else than the loop, to whom time passes too."""

    def due_s(self, now_s: float) -> float | None:
        """Take up what there is; when something ends."""
        ...

    def end(self, now_s: float) -> None:
        """Let that be ended."""
        ...


class VirtualTime(selectors.EpollSelector):
    """A loop's selector and clock. All clocks of the module `time` show what it says while it is `passing`.

    Args:
        aside: opened while the players play.
    """

    def __init__(self, aside: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        super().__init__()
        self._aside = aside
        self.now_s = 0.0
        self.players: list[Player] = []
        self.looks = 0
        """How often the loop looked what is readable: each is a system call."""
        self.wake_ups = 0
        """How often it had to wait for that, or for a timer."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.looks += 1
        if timeout is not None and timeout <= 0:
            return super().select(0)
        self.wake_ups += 1
        with self._aside():
            return self._wait(None if timeout is None else self.now_s + timeout)

    def _wait(self, timer_s: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        while True:
            ends = [(due_s, player) for player in self.players if (due_s := player.due_s(self.now_s)) is not None]
            if events := super().select(0):
                return events
            due_s, player = min(ends, key=lambda end: end[0], default=(None, None))
            if player is None or due_s is None or (timer_s is not None and timer_s <= due_s):
                assert timer_s is not None, "everybody waits for somebody else"
                # A little more, as the loop takes a timer for due only within the resolution of its clock.
                self.now_s = max(self.now_s, timer_s) + 1e-9
                return super().select(0)
            self.now_s = max(self.now_s, due_s)
            player.end(self.now_s)

    @contextlib.contextmanager
    def passing(self) -> Iterator[asyncio.AbstractEventLoop]:
        """A loop that waits here; meanwhile everybody's clocks stand still while it does not."""

        def nanoseconds() -> int:
            return int(self.now_s * _NANO)

        loop = asyncio.SelectorEventLoop(self)
        with (
            mock.patch.multiple(
                "time",
                monotonic=lambda: self.now_s,
                monotonic_ns=nanoseconds,
                clock_gettime=lambda clock: self.now_s,
                clock_gettime_ns=lambda clock: nanoseconds(),
                time=lambda: BEGIN_S + self.now_s,
                time_ns=lambda: int(BEGIN_S) * _NANO + nanoseconds(),
            ),
            contextlib.closing(loop),
        ):
            yield loop
