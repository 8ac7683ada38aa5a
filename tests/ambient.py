"""Clock, dice and ids that a test sets: the only fakes there are."""

import itertools


class FakeClock:
    """Time moves only when the test says so."""

    def __init__(self, now_ms: int = 1_750_000_000_000) -> None:
        self._now_ms = now_ms
        self._steady_s = 1_000.0

    def now_ms(self) -> int:
        return self._now_ms

    def steady_s(self) -> float:
        return self._steady_s

    def advance_ms(self, milliseconds: int) -> None:
        self._now_ms += milliseconds
        self._steady_s += milliseconds / 1000

    def step_ms(self, milliseconds: int) -> None:
        """Somebody sets the time of day, back when it is negative. No time passes by the steady clock."""
        self._now_ms += milliseconds


class FakeDice:
    """Always throws the same fraction."""

    def __init__(self, fraction: float = 0.5) -> None:
        self.thrown = fraction

    def fraction(self) -> float:
        return self.thrown


class FakeIds:
    """Counts up, so that order and equality are plain to see."""

    def __init__(self, start: int = 1) -> None:
        self._numbers = itertools.count(start)

    def ordered(self) -> bytes:
        return next(self._numbers).to_bytes(16)

    def secret(self) -> bytes:
        return (next(self._numbers) | 1 << 120).to_bytes(16)
