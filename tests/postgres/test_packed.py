"""Packed parameters arrive as what they are, and always with the same type."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runwick.stores.postgres import packed
from runwick.stores.postgres.connection import ADAPTERS

Connection = psycopg.Connection[tuple[Any, ...]]
QUIET = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
BIGINT = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@pytest.fixture(scope="module")
def connection(postgres: Any) -> Iterator[Connection]:
    with psycopg.connect(
        postgres.url(), autocommit=True, cursor_factory=psycopg.RawCursor, context=ADAPTERS
    ) as connection:
        yield connection


def echo(connection: Connection, parameter: packed.Packed) -> tuple[Any, str]:
    """What the server got, and the type that it took it for."""
    row = connection.execute("SELECT $1, pg_typeof($1)::text", (parameter,), binary=True).fetchone()
    assert row is not None
    return row[0], row[1]


def as_column(values: list[Any]) -> list[Any]:
    return [] if all(value is None for value in values) else values


@QUIET
@given(st.lists(st.none() | BIGINT))
def test_numbers(connection: Connection, values: list[int | None]) -> None:
    assert echo(connection, packed.numbers(values)) == (as_column(values), "bigint[]")


@QUIET
@given(st.lists(st.none() | TEXT))
def test_texts(connection: Connection, values: list[str | None]) -> None:
    assert echo(connection, packed.texts(values)) == (as_column(values), "text[]")


@QUIET
@given(st.lists(st.none() | st.binary()))
def test_blobs(connection: Connection, values: list[bytes | None]) -> None:
    assert echo(connection, packed.blobs(values)) == (as_column(values), "bytea[]")


@QUIET
@given(st.lists(st.binary(min_size=16, max_size=16)))
def test_ids(connection: Connection, values: list[bytes]) -> None:
    assert echo(connection, packed.ids(values)) == (values, "uuid[]")


@QUIET
@given(BIGINT)
def test_one_number(connection: Connection, value: int) -> None:
    assert echo(connection, packed.number(value)) == (value, "bigint")


def test_one_id(connection: Connection) -> None:
    assert echo(connection, packed.Id(b"0123456789abcdef")) == (b"0123456789abcdef", "uuid")


def test_json_is_text(connection: Connection) -> None:
    assert echo(connection, packed.jsons([b'["\\u0000"]', None])) == (['["\\u0000"]', None], "text[]")


@pytest.mark.parametrize("values", [[1 << 63], [-(1 << 63) - 1], [None, 1 << 63]])
def test_a_number_beyond_64_bits_is_refused(values: list[int | None]) -> None:
    with pytest.raises(OverflowError):
        packed.numbers(values)


@pytest.mark.parametrize("text", ["a\0b", "half \ud800"])
def test_a_text_that_cannot_be_stored_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is another one for each
        packed.texts(["good", None, text])
