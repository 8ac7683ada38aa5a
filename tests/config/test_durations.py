"""Durations as text: one whole number, one unit."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runwick.config.durations import advice_text, duration_text, milliseconds_text, parse_duration
from runwick.contracts import InvalidArgument

timedelta = datetime.timedelta


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("250ms", timedelta(milliseconds=250)),
        ("15s", timedelta(seconds=15)),
        ("2min", timedelta(minutes=2)),
        ("24h", timedelta(hours=24)),
        ("0s", timedelta(0)),
    ],
)
def test_each_unit_is_read(text: str, duration: datetime.timedelta) -> None:
    assert parse_duration(text) == duration
    assert duration_text(duration) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "15", "s", "15 s", " 15s", "15s\n", "+15s", "-15s", "1.5s", "1e3s", "015s", "1_000ms", "15S", "15sec"),
        *("1m", "2min30s", "1d", "١٥s", "15µs", "9" * 18 + "h", "1" * 5000 + "ms"),
    ],
)
def test_nothing_else_is_read(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_duration(text)
    assert refused.value.code == "invalid_timing"
    assert refused.value.message == (
        f"expected a duration such as 250ms, 15s, 2min or 24h (one whole number, one unit), got {text!r}"
    )


@given(st.integers(0, 10**14))
def test_text_and_duration_mean_the_same(duration_ms: int) -> None:
    duration = timedelta(milliseconds=duration_ms)
    assert parse_duration(duration_text(duration)) == duration


@pytest.mark.parametrize("duration", [timedelta(microseconds=1500), timedelta(seconds=-1)])
def test_only_whole_milliseconds_from_zero_have_a_text(duration: datetime.timedelta) -> None:
    with pytest.raises(InvalidArgument, match="only whole milliseconds from zero"):
        duration_text(duration)


@pytest.mark.parametrize(
    ("duration", "figure", "advice"),
    [
        (timedelta(seconds=41), "41000 ms", "41 s"),
        (timedelta(milliseconds=1500), "1500 ms", "1500 ms"),
        (timedelta(microseconds=500), "0.5 ms", "0.5 ms"),
        (timedelta(minutes=10), "600000 ms", "10 min"),
        (timedelta(seconds=-5), "-5000 ms", "-5 s"),
        (timedelta(0), "0 ms", "0 s"),
    ],
)
def test_figures_are_exact(duration: datetime.timedelta, figure: str, advice: str) -> None:
    assert (milliseconds_text(duration), advice_text(duration)) == (figure, advice)
