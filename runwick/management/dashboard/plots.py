"""Plots as data: where every line, box and dot goes. The templates draw them; each has its numbers in a table
beside it.

Nothing here knows a colour: outcomes differ by shape as well.
"""

import datetime
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from runwick.management.bodies import DistributionBody, PointBody, TrendBody
from runwick.management.dashboard import texts
from runwick.management.dashboard.scales import Scale, rounded, time_format, time_ticks

DOTS_MAX: Final = 600
"""Dots of one cloud: more would only lie on top of each other."""

_TREND_WIDTH: Final = 160
_TREND_HEIGHT: Final = 36
_STRIP_WIDTH: Final = 420
_APART: Final = 120
"""Nearer than this, two texts below a strip could touch."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 10, 10, 26
_CLOUD_WIDTH: Final = 420
_CLOUD_HEIGHT: Final = 220


class Figure(msgspec.Struct, frozen=True):
    """One of the figures that a run costs: how it is named, read and written."""

    title: str
    member: str
    """Of points and of types' distributions."""
    written: Callable[[float | None], str]
    base: int = 10


FIGURES: Final = (
    Figure("Wall time", "wall_us", texts.elapsed),
    Figure("CPU time", "cpu_us", texts.elapsed),
    Figure("Peak memory", "rss_peak_bytes", texts.size, 1024),
    Figure("Allocated", "allocated_bytes", texts.size, 1024),
)


class Trend(msgspec.Struct, frozen=True):
    """A small line without axes."""

    width: int
    height: int
    line: str
    """Points of a polyline; so is the next, which closes at the ground."""
    area: str


class Mark(msgspec.Struct, frozen=True):
    """One value on a strip or an axis."""

    at: float
    text: str
    name: str = ""


class Strip(msgspec.Struct, frozen=True):
    """How a figure lies over many runs: whiskers, a box for the middle half, and this run's mark."""

    width: int
    marks: tuple[Mark, ...]
    """Lowest, quarter, median, three quarters, 90 %, 99 %, highest."""
    this: Mark | None

    @property
    def ends(self) -> tuple[Mark, ...]:
        """What stands below it: the lowest and the highest value, or both in one text where they lie too close."""
        low, _, median, *_, high = self.marks
        if high.at - low.at > _APART:
            return low, high
        text = low.text if low.text == high.text else f"{low.text} to {high.text}"
        return (Mark(median.at, text),)

    def anchor(self, mark: Mark) -> str:
        """On which side of its mark a text stands, so that it stays inside."""
        return "start" if mark.at < 90 else "end" if mark.at > self.width - 90 else "middle"


class Dot(msgspec.Struct, frozen=True):
    x: float
    y: float
    succeeded: bool
    text: str


class Cloud(msgspec.Struct, frozen=True):
    """Runs as dots between two axes."""

    width: int
    height: int
    left: float
    """The edges of the room inside the axes; so for the next three."""
    right: float
    top: float
    bottom: float
    across: tuple[Mark, ...]
    up: tuple[Mark, ...]
    dots: tuple[Dot, ...]
    is_log: bool


def trend(body: TrendBody) -> Trend:
    """The line of a figure over time."""
    values = body.values or (0,)
    top = max(1, *values)
    step = _TREND_WIDTH / max(len(values) - 1, 1)
    spots = [rounded((i * step, _TREND_HEIGHT - 2 - (_TREND_HEIGHT - 4) * v / top)) for i, v in enumerate(values)]
    if len(spots) == 1:
        spots.append((float(_TREND_WIDTH), spots[0][1]))
    line = " ".join(f"{x:g},{y:g}" for x, y in spots)
    area = f"0,{_TREND_HEIGHT} {line} {_TREND_WIDTH},{_TREND_HEIGHT}"
    return Trend(_TREND_WIDTH, _TREND_HEIGHT, line, area)


_PARTS: Final = (
    ("minimum", "lowest"),
    ("p25", "25 %"),
    ("p50", "median"),
    ("p75", "75 %"),
    ("p90", "90 %"),
    ("p99", "99 %"),
    ("maximum", "highest"),
)


def strip(spread: DistributionBody, figure: Figure, this: int | None = None) -> Strip:
    """How a figure lies over the runs of a type, and where this run's lies among them."""
    values = [getattr(spread, member) for member, _ in _PARTS]
    everything = values if this is None else [*values, this]
    scale = Scale.over(everything, base=figure.base)
    # From the lowest value on, not from zero: what differs little would be one thick line.
    scale = Scale(max(min(everything), 1) if scale.is_log else min(everything), max(everything), scale.is_log)

    def mark(value: int, name: str) -> Mark:
        return Mark(round(8 + scale.place(value) * (_STRIP_WIDTH - 16), 1), figure.written(value), name)

    marks = tuple(mark(value, name) for value, (_, name) in zip(values, _PARTS, strict=True))
    return Strip(_STRIP_WIDTH, marks, None if this is None else mark(this, "this run"))


def over_time(points: Sequence[PointBody], figure: Figure) -> Cloud | None:
    """A figure of the latest runs by when they ended; None where it was not measured."""
    known = _measured(points, figure)
    if not known:
        return None
    moments = [texts.instant(point.ended_at).timestamp() for point in known]
    low, high = min(moments), max(moments)
    pattern = time_format(low, high)
    ticks = tuple(
        Mark(_across(tick.place), datetime.datetime.fromtimestamp(tick.value, datetime.UTC).strftime(pattern))
        for tick in time_ticks(low, high, 2 if high - low < 10 else 4)
    )
    return _cloud(known, figure, [Scale(low, high).place(moment) for moment in moments], ticks)


def by_payload(points: Sequence[PointBody], figure: Figure) -> Cloud | None:
    """A figure of the latest runs by the size of their payload; None where it was not measured."""
    known = _measured(points, figure)
    if not known:
        return None
    scale = Scale.over((point.payload_bytes for point in known), base=1024)
    ticks = tuple(Mark(_across(tick.place), texts.size(tick.value)) for tick in scale.ticks())
    return _cloud(known, figure, [scale.place(point.payload_bytes) for point in known], ticks)


def _measured(points: Sequence[PointBody], figure: Figure) -> tuple[PointBody, ...]:
    return tuple(point for point in points if getattr(point, figure.member) is not None)[:DOTS_MAX]


def _cloud(points: tuple[PointBody, ...], figure: Figure, places: Sequence[float], across: tuple[Mark, ...]) -> Cloud:
    values = [getattr(point, figure.member) for point in points]
    scale = Scale.over(values, base=figure.base)
    dots = tuple(
        Dot(
            _across(place),
            _up(scale.place(value)),
            point.outcome == "succeeded",
            f"{figure.written(value)}, payload {texts.size(point.payload_bytes)}, {texts.words(point.outcome)}, "
            f"{texts.moment(point.ended_at)}",
        )
        for point, place, value in zip(points, places, values, strict=True)
    )
    up = tuple(Mark(_up(tick.place), figure.written(tick.value)) for tick in scale.ticks())
    right, bottom = _CLOUD_WIDTH - _RIGHT, _CLOUD_HEIGHT - _BOTTOM
    return Cloud(_CLOUD_WIDTH, _CLOUD_HEIGHT, _LEFT, right, _TOP, bottom, across, up, dots, scale.is_log)


def _across(place: float) -> float:
    return round(_LEFT + place * (_CLOUD_WIDTH - _LEFT - _RIGHT), 1)


def _up(place: float) -> float:
    return round(_CLOUD_HEIGHT - _BOTTOM - place * (_CLOUD_HEIGHT - _TOP - _BOTTOM), 1)
