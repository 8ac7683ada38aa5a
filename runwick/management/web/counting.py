"""How often something happened within the last while, for many keys, in bounded memory."""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final

from runwick.contracts.ambient import Clock

KEYS_MAX: Final = 10_000
"""Keys that are remembered; the one that was silent longest is forgotten first."""


class RollingCounts:
    """At most so many within any window, for each key by itself.

    Args:
        most: how many.
        window_s: the window's length in seconds.
        clock: its steady seconds count.
    """

    def __init__(self, most: int, window_s: float, clock: Clock) -> None:
        self._most = most
        self._window_s = window_s
        self._clock = clock
        self._times: OrderedDict[Hashable, deque[float]] = OrderedDict()

    def take(self, key: Hashable) -> float | None:
        """Count one more; None if that was within the limit, otherwise nothing is counted, and it is the seconds until
        one would be."""
        now_s = self._clock.steady_s()
        times = self._times.setdefault(key, deque())
        self._times.move_to_end(key)
        while times and times[0] <= now_s - self._window_s:
            times.popleft()
        if len(times) >= self._most:
            return times[0] + self._window_s - now_s
        times.append(now_s)
        if len(self._times) > KEYS_MAX:
            self._times.popitem(last=False)
        return None

    def give_back(self, key: Hashable) -> None:
        """Take back what was counted last for a key."""
        if times := self._times.get(key):
            times.pop()
