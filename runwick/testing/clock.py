"""A clock that a test moves: delays and retries come due without waiting."""

import datetime
import time


class SteppingClock:
    """Starts at the time of now and then moves only when told to."""

    def __init__(self) -> None:
        self._now_ms = time.time_ns() // 1_000_000
        self._steady_s = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def steady_s(self) -> float:
        return self._steady_s

    def advance(self, by: datetime.timedelta) -> None:
        """Move on.

        Raises:
            ValueError: `by` is negative; time does not go back.
        """
        if by < datetime.timedelta(0):
            raise ValueError(f"time moves forward only, this is {by}")
        self._now_ms += by // datetime.timedelta(milliseconds=1)
        self._steady_s += by.total_seconds()
