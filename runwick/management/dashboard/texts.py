"""Figures, times and foreign text as pages show them. Only for showing; nothing reads them back.

Every text that an application or its users made is foreign: it is cut, and what would move or hide other text (control
characters, marks that turn the direction of writing) is shown as a sign. Escaping is the templates' part.
"""

import datetime
import re
from typing import Final

from runwick.contracts.listing import COUNTED_MAX

LINE_MAX: Final = 200
"""Characters of a foreign text within a line."""
BLOCK_MAX: Final = 100_000
"""Characters of a foreign text with lines of its own, such as a traceback."""

_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SIGN: Final = "\N{REPLACEMENT CHARACTER}"
_DIRECTIONS: Final = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
_UNSEEN_IN_LINE: Final = re.compile(f"[\x00-\x1f\x7f-\x9f{_DIRECTIONS}]")
_UNSEEN_IN_BLOCK: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_DIRECTIONS}]")


def line(text: object, most: int = LINE_MAX) -> str:
    """A foreign text within a line, at most `most` characters of it."""
    shown = str(text)
    cut = shown if len(shown) <= most else shown[: most - 1] + "…"
    return _UNSEEN_IN_LINE.sub(_SIGN, cut)


def block(text: str, most: int = BLOCK_MAX) -> str:
    """A foreign text with lines of its own; where it is cut, it says so."""
    cut = text if len(text) <= most else f"{text[:most]}\n… cut here: {len(text) - most:,} more characters"
    return _UNSEEN_IN_BLOCK.sub(_SIGN, cut)


def elapsed(duration_us: float | None) -> str:
    """A duration: ``850 µs``, ``12 ms``, ``1.8 s``, ``2 min 5 s``, ``1 h 2 min``, ``3 d 4 h``; a dash for none."""
    if duration_us is None:
        return "–"
    if duration_us < 1_000:
        return f"{duration_us:.0f} µs"
    if duration_us < 999_500:
        return f"{_short(duration_us / 1_000)} ms"
    if duration_us < 59_950_000:
        return f"{duration_us / 1_000_000:.1f} s"
    minutes, seconds = divmod(round(duration_us / 1_000_000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days:,} d {hours} h"


def size(size_bytes: float | None) -> str:
    """An amount of memory or text: ``512 B``, ``9.5 KiB``, ``41 MiB``, ``1.9 GiB``; a dash for none."""
    if size_bytes is None:
        return "–"
    if round(size_bytes) < 1024:
        return f"{size_bytes:.0f} B"
    amount = float(size_bytes)
    for unit in _SIZES:
        if round(amount) < 1024 or unit == _SIZES[-1]:
            break
        amount /= 1024
    return f"{_short(amount)} {unit}"


def count(number: float | None) -> str:
    """A number: ``1,248``; a dash for none."""
    return "–" if number is None else f"{number:,.0f}"


def capped(number: int) -> str:
    """A number that was counted up to a bound: ``10,000+`` there."""
    return f"{COUNTED_MAX:,}+" if number >= COUNTED_MAX else f"{number:,}"


def share(part: float | None) -> str:
    """A share of one as a percentage: ``96.1 %``; a dash for none."""
    return "–" if part is None else f"{part * 100:.1f} %"


def instant(at: str) -> datetime.datetime:
    """A time as bodies have it, aware."""
    return datetime.datetime.fromisoformat(at)


def clock(at: str) -> str:
    """A time of day in UTC, to the second: ``12:04:31``."""
    return instant(at).strftime("%H:%M:%S")


def moment(at: str | None) -> str:
    """A point in time in UTC, to the second: ``2026-11-29 12:04:31``; a dash for none."""
    return "–" if at is None else instant(at).strftime("%Y-%m-%d %H:%M:%S")


def ago(at: str | None, as_of: str) -> str:
    """How long before another one a time was: ``3 min 2 s ago``, ``in 4.0 s``, ``now``; a dash for none."""
    if at is None:
        return "–"
    passed_us = between(at, as_of)
    if abs(passed_us) < 1_000_000:
        return "now"
    return f"{elapsed(passed_us)} ago" if passed_us > 0 else f"in {elapsed(-passed_us)}"


def between(start: str, end: str) -> int:
    """Microseconds from one time to another."""
    return (instant(end) - instant(start)) // datetime.timedelta(microseconds=1)


def words(code: str) -> str:
    """A code as words: ``queue_behind`` is ``queue behind``."""
    return line(code).replace("_", " ")


def _short(amount: float) -> str:
    """One decimal below ten, none from there on."""
    return f"{amount:.1f}" if amount < 9.95 else f"{amount:.0f}"
