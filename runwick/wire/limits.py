"""The limits of the profile, and the one walk that finds what breaks them.

The walk costs up to a microsecond per member, so it is the exception: `proves_limits` looks at the encoded bytes
first, and small payloads, which are nearly all, are proven by their length and a few counts.
"""

import datetime
import decimal
import math
from typing import Any, Final

from runwick.wire.errors import Fault

PAYLOAD_MAX_BYTES: Final = 1024 * 1024
DEPTH_MAX: Final = 32
"""Objects and arrays inside each other; the payload itself is the first."""
STRING_MAX_BYTES: Final = 256 * 1024
"""Of one text or member name, as UTF-8 without its escapes."""
MEMBERS_MAX: Final = 256
ELEMENTS_MAX: Final = 16_384
DECIMAL_EXPONENT_MAX: Final = 6_144
"""Of a decimal's first digit, in both directions; ``int(Decimal("1E+999999"))`` would take most of a minute."""

KEPT_TYPES: Final = (datetime.datetime, decimal.Decimal)
"""What stays itself when a value is turned into plain objects for the walk."""

_MEMBER_MIN_BYTES: Final = 5
"""``"":1,`` is the shortest member."""
_ELEMENT_MIN_BYTES: Final = 2
_PATH_NAME_MAX_CHARACTERS: Final = 60
_FREE_OF_RULES: Final = frozenset({int, bool, type(None)})


def proves_limits(payload: bytes, *, depth_is_bounded: bool) -> bool:
    """Whether the bytes alone show that no limit but the size is broken and that no text holds a NUL.

    Counts also count what stands inside texts, so they never understate; False only means that nothing is proven.

    Args:
        payload: JSON as it will be stored.
        depth_is_bounded: whether its type alone keeps it within `DEPTH_MAX`.
    """
    size = len(payload)
    return (
        size <= STRING_MAX_BYTES
        and (depth_is_bounded or payload.count(b"{") + payload.count(b"[") <= DEPTH_MAX)
        and (size <= MEMBERS_MAX * _MEMBER_MIN_BYTES or payload.count(b":") <= MEMBERS_MAX)
        and (size <= ELEMENTS_MAX * _ELEMENT_MIN_BYTES or payload.count(b",") < ELEMENTS_MAX)
        and b"\\u0000" not in payload
    )


def find_fault(value: Any, depth: int = 0) -> Fault | None:
    """The first rule that a plain value breaks: limits, text, finite numbers, bounded decimals, aware datetimes.

    Args:
        value: what JSON can hold as dict, list, tuple, str, numbers, True, False and None, and `KEPT_TYPES`.
        depth: how many objects and arrays are around it.
    """
    kind = type(value)
    if kind in _FREE_OF_RULES:
        return None
    if kind is str:
        return _text_fault(value)
    if kind is dict:
        return _object_fault(value, depth + 1)
    if kind is list or kind is tuple:
        return _array_fault(value, depth + 1)
    if kind is float:
        return None if math.isfinite(value) else Fault("invalid_payload", "$", f"JSON has no number {value}")
    if isinstance(value, decimal.Decimal):
        return _decimal_fault(value)
    return _datetime_fault(value)


def _object_fault(members: dict[Any, Any], depth: int) -> Fault | None:
    if depth > DEPTH_MAX:
        return _too_deep()
    if len(members) > MEMBERS_MAX:
        return _over("an object", len(members), MEMBERS_MAX, "members")
    for name, value in members.items():
        if type(name) is not str:
            return Fault("invalid_payload", "$", f"member names are text, one is {type(name).__name__} {name!r}")
        if fault := _text_fault(name):
            return fault._replace(why=f"in a member's name, {fault.why}")
        if type(value) not in _FREE_OF_RULES and (fault := find_fault(value, depth)):
            return fault.below(_step(name))
    return None


def _array_fault(elements: list[Any] | tuple[Any, ...], depth: int) -> Fault | None:
    if depth > DEPTH_MAX:
        return _too_deep()
    if len(elements) > ELEMENTS_MAX:
        return _over("an array", len(elements), ELEMENTS_MAX, "elements")
    for index, value in enumerate(elements):
        if type(value) not in _FREE_OF_RULES and (fault := find_fault(value, depth)):
            return fault.below(f"[{index}]")
    return None


def _text_fault(text: str) -> Fault | None:
    if "\0" in text:
        return Fault("invalid_text", "$", "text cannot hold a NUL character (U+0000)")
    size = len(text)
    if not text.isascii():
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            found = f"U+{ord(text[error.start]):04X}"
            return Fault("invalid_text", "$", f"text cannot hold half of a surrogate pair ({found})")
    return _over("a text", size, STRING_MAX_BYTES, "bytes of UTF-8") if size > STRING_MAX_BYTES else None


def _decimal_fault(value: decimal.Decimal) -> Fault | None:
    if not value.is_finite():
        return Fault("invalid_payload", "$", f"JSON has no number {value}")
    exponent = value.adjusted()
    if abs(exponent) > DECIMAL_EXPONENT_MAX:
        return Fault(
            "invalid_payload", "$", f"a decimal's exponent is at most ±{DECIMAL_EXPONENT_MAX:,}, this is {exponent:+,}"
        )
    return None


def _datetime_fault(value: datetime.datetime) -> Fault | None:
    if value.utcoffset() is None:
        return Fault("invalid_payload", "$", "a datetime needs a time zone, give it one such as datetime.UTC")
    try:
        value.astimezone(datetime.UTC)
    except OverflowError:
        return Fault("invalid_payload", "$", f"the datetime {value.isoformat()} does not exist in UTC")
    return None


def _over(what: str, number: int, limit: int, unit: str) -> Fault:
    return Fault("payload_limit_exceeded", "$", f"{what} may have {limit:,} {unit}, this has {number:,}")


def _too_deep() -> Fault:
    return Fault("payload_limit_exceeded", "$", f"objects and arrays may nest {DEPTH_MAX} levels, this goes deeper")


def _step(name: str) -> str:
    """How a path goes to the member `name`; a name that would blur the path is quoted and cut."""
    if name.isidentifier() and len(name) <= _PATH_NAME_MAX_CHARACTERS:
        return f".{name}"
    return f"[{name[:_PATH_NAME_MAX_CHARACTERS]!r}]"
