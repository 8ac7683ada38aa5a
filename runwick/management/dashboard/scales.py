"""From values to places on an axis, and the few round values that are written beside it."""

import math
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

_LOG_FROM: Final = 50
"""An axis whose highest value is so many times its lowest shows orders of magnitude instead."""
_STEPS: Final = (1, 2, 5, 10)
_DAY_S: Final = 86_400


class Tick(msgspec.Struct, frozen=True):
    """A value written beside an axis."""

    place: float
    """0 at the low end, 1 at the high one."""
    value: float


class Scale(msgspec.Struct, frozen=True):
    """One axis, from `low` to `high`."""

    low: float
    high: float
    is_log: bool = False
    step: float = 1
    """From one round value to the next: added, or by orders of magnitude multiplied."""

    @classmethod
    def over(cls, values: Iterable[float], *, base: int = 10) -> "Scale":
        """The axis for these values, none of them negative: from zero, unless they differ by orders of magnitude.

        Args:
            base: of the numbers that are round in this unit: 1024 for memory, 10 for the rest.
        """
        known = [value for value in values if value >= 0]
        high, low = max(known, default=1), min((value for value in known if value > 0), default=1)
        if high / low >= _LOG_FROM:
            power = 10 if base == 10 else 2
            ends = power ** math.floor(math.log(low, power)), power ** math.ceil(math.log(high, power))
            return cls(*ends, is_log=True, step=power)
        step = _step(high or 1, base)
        return cls(0, step * math.ceil((high or 1) / step), step=step)

    def place(self, value: float) -> float:
        """Where a value lies, 0 to 1; what is outside lies at the end that is next to it."""
        if self.high <= self.low:
            return 0.5
        if self.is_log:
            found = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            found = (value - self.low) / (self.high - self.low)
        return min(max(found, 0.0), 1.0)

    def ticks(self) -> tuple[Tick, ...]:
        """Two to six round values, low to high."""
        if self.is_log:
            values = self._magnitudes()
        else:
            values = [self.step * at for at in range(round(self.high / self.step) + 1)]
        return tuple(Tick(self.place(value), value) for value in values)

    def _magnitudes(self) -> list[float]:
        first, last = (round(math.log(end, self.step)) for end in (self.low, self.high))
        stride = max(1, math.ceil((last - first) / 4))
        return [self.step**exponent for exponent in range(first, last + 1, stride)]


def time_ticks(low_s: float, high_s: float, most: int = 4) -> tuple[Tick, ...]:
    """Moments spread evenly over a span of time, in seconds since the epoch."""
    if high_s <= low_s:
        return (Tick(0.5, low_s),)
    return tuple(Tick(at / (most - 1), low_s + (high_s - low_s) * at / (most - 1)) for at in range(most))


def time_format(low_s: float, high_s: float) -> str:
    """How such moments are written: with the date where the day alone says too little."""
    if high_s - low_s > 2 * _DAY_S:
        return "%d %b"
    return "%H:%M:%S" if high_s - low_s < 600 else "%H:%M"


def rounded(values: Sequence[float]) -> tuple[float, ...]:
    """Coordinates to a tenth: nobody sees more, and the page stays small."""
    return tuple(round(value, 1) for value in values)


def _step(high: float, base: int) -> float:
    """The round step that gives three to six ticks up to `high`."""
    unit = 1.0
    while base != 10 and high / unit >= base:
        unit *= base
    rough = high / unit / 4
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(candidate * magnitude for candidate in _STEPS if candidate * magnitude >= rough * 0.999)
    return step * unit
