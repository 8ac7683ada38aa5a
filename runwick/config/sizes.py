"""Sizes in bytes as text: ``256MiB``, ``2GiB``, ``4096``."""

import re
from typing import Final

from runwick.contracts.errors import InvalidArgument

_UNITS: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE: Final = re.compile(r"(\d{1,15})(KiB|MiB|GiB|TiB|)")


def parse_bytes(text: str) -> int:
    """The number of bytes that `text` means.

    Raises:
        InvalidArgument: it is no whole number with one of the units KiB, MiB, GiB, TiB or none
            (code ``invalid_argument``).
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InvalidArgument("invalid_argument", f"a size is written like 256MiB or 2GiB, this is {text!r}")
    return int(match[1]) * _UNITS[match[2]]


def bytes_text(size_bytes: int) -> str:
    """The shortest text that `parse_bytes` reads as this size."""
    for unit, factor in reversed(_UNITS.items()):
        if size_bytes % factor == 0 and size_bytes >= factor:
            return f"{size_bytes // factor}{unit}"
    return str(size_bytes)
