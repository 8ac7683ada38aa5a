"""Where something stands in the history of an application: which write it was a part of, and which part.

Writes are counted by the application itself, so that their order is the order of the commits.
"""

import re
from typing import Final, NamedTuple, Self

from runwick.stores import refusals
from runwick.stores.cursors import place_of

_PLACE: Final = re.compile(r"([0-9]{1,15})\.([0-9]{1,9})")
_PARTS: Final = 10**6
"""More than one write has."""


class Place(NamedTuple):
    """Behind it, or in front of it, something is looked for."""

    write: int
    part: int

    def __str__(self) -> str:
        return f"{self.write}.{self.part}"

    @classmethod
    def of(cls, store_id: bytes, cursor: str) -> Self:
        """The place of a cursor.

        Raises:
            InvalidArgument: it is no cursor of this store (code ``invalid_argument``).
        """
        found = _PLACE.fullmatch(place_of(store_id, cursor))
        if found is None:
            raise refusals.no_cursor(cursor)
        return cls(int(found[1]), int(found[2]))

    @classmethod
    def at(cls, number: int) -> Self:
        """The other way round from `number`."""
        return cls(*divmod(number, _PARTS))

    @property
    def number(self) -> int:
        """As one number, in the same order."""
        return self.write * _PARTS + self.part


START: Final = Place(0, 0)
