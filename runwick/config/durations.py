"""Durations as text, on the command line and in ``RUNWICK_`` variables: ``250ms``, ``15s``, ``2min``, ``24h``.

One whole number and one unit, nothing else: no sign, no fraction, no space, no second unit. In code a duration is a
`datetime.timedelta`.
"""

import datetime
import re
from typing import Final

from runwick.contracts.errors import InvalidArgument

MILLISECOND: Final = datetime.timedelta(milliseconds=1)
SECOND: Final = datetime.timedelta(seconds=1)

_UNITS: Final = {
    "h": datetime.timedelta(hours=1),
    "min": datetime.timedelta(minutes=1),
    "s": SECOND,
    "ms": MILLISECOND,
}
_TEXT: Final = re.compile(r"(0|[1-9][0-9]{0,17})(ms|s|min|h)", re.ASCII)


def parse_duration(text: str) -> datetime.timedelta:
    """The duration that `text` says.

    Raises:
        InvalidArgument: it is not one whole number followed by ``ms``, ``s``, ``min`` or ``h``, or it is longer than
            a timedelta can be (code ``invalid_timing``).
    """
    found = _TEXT.fullmatch(text)
    if found is not None:
        try:
            return int(found[1]) * _UNITS[found[2]]
        except OverflowError:
            pass
    raise InvalidArgument(
        "invalid_timing",
        f"expected a duration such as 250ms, 15s, 2min or 24h (one whole number, one unit), got {text!r}",
    )


def duration_text(duration: datetime.timedelta) -> str:
    """The shortest text that `parse_duration` reads as `duration`: the largest unit that leaves a whole number.

    Raises:
        InvalidArgument: the duration is negative or not a whole number of milliseconds (code ``invalid_timing``).
    """
    if duration < 0 * MILLISECOND or duration % MILLISECOND:
        raise InvalidArgument(
            "invalid_timing", f"only whole milliseconds from zero can be written as text, got {duration!r}"
        )
    return "".join(_largest_unit(duration))


def advice_text(duration: datetime.timedelta) -> str:
    """A figure for advice, easy to read: ``41 s``, ``10 min``, ``0.5 ms``."""
    return milliseconds_text(duration) if duration % MILLISECOND else " ".join(_largest_unit(duration))


def _largest_unit(duration: datetime.timedelta) -> tuple[str, str]:
    """The number and the unit of a whole number of milliseconds; zero counts in seconds."""
    units = _UNITS if duration else {"s": SECOND}
    return next((str(duration // size), unit) for unit, size in units.items() if not duration % size)


def milliseconds_text(duration: datetime.timedelta) -> str:
    """A figure for a message, exact: ``31000 ms``, ``0.5 ms``."""
    whole, rest = divmod(abs(duration), MILLISECOND)
    sign = "-" if duration < 0 * MILLISECOND else ""
    fraction = f".{rest.microseconds:03d}".rstrip("0") if rest else ""
    return f"{sign}{whole}{fraction} ms"
