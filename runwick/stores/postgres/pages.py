"""Pages of the walks that tell, beside what was chosen, the last row that they looked at."""

from collections.abc import Sequence
from typing import Any, Final

_PLACE: Final = 0
_CHOSEN: Final = 1


def page(rows: Sequence[tuple[Any, ...]], limit: int) -> tuple[list[tuple[Any, ...]], Any]:
    """What was chosen, and behind which place more may follow; None where the walk has come to its end.

    Args:
        rows: of a statement that was asked for one more than `limit`: place, whether it was chosen, and the rest.
        limit: how many a page has.

    Returns:
        The rows of the page, and the place.
    """
    found = [row for row in rows if row[_CHOSEN]]
    if len(found) > limit:
        return found[:limit], found[limit - 1][_PLACE]
    return found, rows[-1][_PLACE] if rows and not rows[-1][_CHOSEN] else None
