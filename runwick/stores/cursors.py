"""Cursors: where a reader of the history stands, and in which store.

::

    3f9a01c7.8.311      of which store (the end of its id) . the place there, which each store writes in its own way

A copy that got its own identity goes on by itself, so a place in the one means nothing in the other: the reader would
pass over whatever was committed there in front of it. A copy that kept its identity cannot be told apart.
"""

from typing import Final

from runwick.stores import refusals

_BYTES: Final = 4
"""Of the store's id, from its end, which is the random part."""


def cursor_at(store_id: bytes, place: object) -> str:
    """The cursor of a place in this store."""
    return f"{store_id[-_BYTES:].hex()}.{place}"


def place_of(store_id: bytes, cursor: str) -> str:
    """The place of a cursor, as the store wrote it, if it could be one of this store's.

    Raises:
        InvalidArgument: it is another store's, or none (code ``invalid_argument``).
    """
    whose, dot, place = cursor.partition(".")
    if not dot or whose != store_id[-_BYTES:].hex():
        raise refusals.no_cursor(cursor)
    return place
