"""Figures as people read them: two or three digits and a unit. Only for showing; nothing reads them back."""

import datetime
from typing import Final

_EPOCH: Final = datetime.datetime(1970, 1, 1)
_FIRST_MS, _LAST_MS = (
    (end - _EPOCH) // datetime.timedelta(milliseconds=1) for end in (datetime.datetime.min, datetime.datetime.max)
)
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def elapsed(duration_us: int) -> str:
    """A duration: ``850 µs``, ``12 ms``, ``1.8 s``, ``2 min 5 s``, ``1 h 2 min``."""
    if duration_us < 1_000:
        return f"{duration_us} µs"
    if duration_us < 999_500:
        return f"{_short(duration_us / 1_000)} ms"
    if duration_us < 59_950_000:
        return f"{duration_us / 1_000_000:.1f} s"
    minutes, seconds = divmod(round(duration_us / 1_000_000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"


def size(size_bytes: int) -> str:
    """An amount of memory or text: ``512 B``, ``9.5 KiB``, ``41 MiB``, ``1.9 GiB``."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    amount = float(size_bytes)
    for unit in _SIZES:
        if round(amount) < 1024 or unit == _SIZES[-1]:
            break
        amount /= 1024
    return f"{_short(amount)} {unit}"


def instant(time_ms: int) -> datetime.datetime:
    """A stored point in time, aware, UTC. What no calendar has, as only a damaged row tells it, is the calendar's first
    or last moment, so that one such row hides no other."""
    passed = datetime.timedelta(milliseconds=min(max(time_ms, _FIRST_MS), _LAST_MS))
    return (_EPOCH + passed).replace(tzinfo=datetime.UTC)


def moment(time_ms: int) -> str:
    """A point in time, to the second, in UTC: ``2026-11-29 12:00:03 UTC``."""
    return instant(time_ms).strftime("%Y-%m-%d %H:%M:%S UTC")


def _short(amount: float) -> str:
    """One decimal below ten, none from there on."""
    return f"{amount:.1f}" if amount < 9.95 else f"{amount:.0f}"


def percent(share: float) -> str:
    """A share of 1 as people read it: ``96 %``."""
    return f"{100 * share:.0f} %"
