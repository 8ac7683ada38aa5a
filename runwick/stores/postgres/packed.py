"""Parameters in PostgreSQL's own binary form: a column of a batch is one array, exact and cheap.

A value is its length and its bytes, whatever they are, so nothing is quoted and nothing can be misread; and packing a
column costs a fraction of what a conversion member by member would. NULL has the length -1::

    dimensions 1 | may hold NULLs | type of a member | how many | first index 1 | length, value | length, value | …

A column of NULLs alone is an empty array, which ``unnest`` fills up beside others. So a parameter has the same type
whatever is in it, and a statement is prepared once.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format

_HEADER: Final = struct.Struct(">iiIii")
_EMPTY: Final = struct.Struct(">iiI")
_NULL: Final = b"\xff\xff\xff\xff"
_LENGTH_8: Final = b"\x00\x00\x00\x08"
_LENGTH_16: Final = b"\x00\x00\x00\x10"

_NUL: Final = "a text holds a NUL character, which PostgreSQL cannot store"

_UUID: Final = psycopg.adapters.types["uuid"]
_BIGINT: Final = psycopg.adapters.types["int8"]
_TEXT: Final = psycopg.adapters.types["text"]
_BYTEA: Final = psycopg.adapters.types["bytea"]
_BOOLEAN: Final = psycopg.adapters.types["bool"]


class Packed(bytes):
    """A parameter that goes to the server as it is. Its class is of `TYPES`."""

    __slots__ = ()


class Id(Packed):
    """One ``uuid``: its 16 bytes."""

    __slots__ = ()


class Number(Packed):
    """One ``bigint``."""

    __slots__ = ()


class Flag(Packed):
    """One ``boolean``."""

    __slots__ = ()


class Text(Packed):
    """One ``text``."""

    __slots__ = ()


class Blob(Packed):
    """One ``bytea``."""

    __slots__ = ()


class Ids(Packed):
    """A ``uuid[]``."""

    __slots__ = ()


class Numbers(Packed):
    """A ``bigint[]``."""

    __slots__ = ()


class Texts(Packed):
    """A ``text[]``."""

    __slots__ = ()


class Blobs(Packed):
    """A ``bytea[]``."""

    __slots__ = ()


TYPES: Final[Mapping[type, int]] = {
    Id: _UUID.oid,
    Number: _BIGINT.oid,
    Flag: _BOOLEAN.oid,
    Text: _TEXT.oid,
    Blob: _BYTEA.oid,
    Ids: _UUID.array_oid,
    Numbers: _BIGINT.array_oid,
    Texts: _TEXT.array_oid,
    Blobs: _BYTEA.array_oid,
}


def register(adapters: AdaptersMap) -> None:
    """Let connections with these adapters take packed parameters."""
    for packed, number_of_type in TYPES.items():
        adapters.register_dumper(packed, type("AsItIs", (_AsItIs,), {"oid": number_of_type}))


class _AsItIs(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> Buffer | None:
        buffer: bytes = obj
        return buffer


def number(value: int) -> Number:
    """One number.

    Raises:
        OverflowError: it is beyond 64 bits.
    """
    return Number(value.to_bytes(8, "big", signed=True))


def flag(value: bool) -> Flag:
    """A yes or no."""
    return Flag(b"\x01" if value else b"\x00")


def text(value: str) -> Text:
    """One text.

    Raises:
        ValueError: as of `texts`.
    """
    if "\x00" in value:
        raise ValueError(_NUL)
    return Text(value.encode())


def ids(values: Sequence[bytes]) -> Ids:
    """Ids of 16 bytes."""
    if not values:
        return Ids(_EMPTY.pack(0, 0, _UUID.oid))
    return Ids(_HEADER.pack(1, 0, _UUID.oid, len(values), 1) + _LENGTH_16 + _LENGTH_16.join(values))


def optional_ids(values: Sequence[bytes | None]) -> Ids:
    """Ids, some of which may be missing."""
    return Ids(_array(_UUID.oid, values))


def numbers(values: Sequence[int | None]) -> Numbers:
    """Numbers.

    Raises:
        OverflowError: one is beyond 64 bits.
    """
    count = len(values)
    nulls = values.count(None)
    if nulls == count:
        return Numbers(_EMPTY.pack(0, 0, _BIGINT.oid))
    header = _HEADER.pack(1, 1, _BIGINT.oid, count, 1)
    if nulls:
        return Numbers(header + b"".join([_NULL if value is None else _LENGTH_8 + number(value) for value in values]))
    members: list[int | None] = [8] * (2 * count)
    members[1::2] = values
    try:
        return Numbers(header + struct.pack(">" + "iq" * count, *members))
    except struct.error as error:
        raise OverflowError(f"a number is beyond 64 bits ({error})") from error


def texts(values: Sequence[str | None]) -> Texts:
    """Texts.

    Raises:
        ValueError: one holds a NUL, or half of a surrogate pair (a `UnicodeEncodeError`).
    """
    encoded = [None if value is None else value.encode() for value in values]
    if b"\x00" in b"".join(filter(None, encoded)):
        raise ValueError(_NUL)
    return Texts(_array(_TEXT.oid, encoded))


def jsons(values: Sequence[bytes | None]) -> Texts:
    """Texts that were encoded as JSON, in which a NUL is an escape."""
    return Texts(_array(_TEXT.oid, values))


def blobs(values: Sequence[bytes | None]) -> Blobs:
    """Byte strings."""
    return Blobs(_array(_BYTEA.oid, values))


def _array(member_type: int, values: Sequence[bytes | None]) -> bytes:
    if values.count(None) == len(values):
        return _EMPTY.pack(0, 0, member_type)
    parts = [_HEADER.pack(1, 1, member_type, len(values), 1)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts += (len(value).to_bytes(4, "big"), value)
    return b"".join(parts)
