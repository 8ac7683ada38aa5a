"""Figures as people read them: two or three digits and a unit. Only for showing; nothing reads them back."""

import datetime
from typing import Final

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


def moment(time_ms: int) -> str:
    """A point in time, to the second, in UTC: ``2026-11-29 12:00:03 UTC``."""
    return datetime.datetime.fromtimestamp(time_ms // 1000, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _short(amount: float) -> str:
    """One decimal below ten, none from there on."""
    return f"{amount:.1f}" if amount < 9.95 else f"{amount:.0f}"
