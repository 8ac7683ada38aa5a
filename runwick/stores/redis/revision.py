"""The revision of a Redis store's keys and rows that this release works with."""

from typing import Final

REVISION: Final = 1
