"""Figures for people."""

import pytest

from runwick.management.amounts import elapsed, moment, size
from runwick.management.desk.shown import time_text


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [
        (0, "0 µs"),
        (999, "999 µs"),
        (1_000, "1.0 ms"),
        (9_949, "9.9 ms"),
        (9_950, "10 ms"),
        (999_499, "999 ms"),
        (999_500, "1.0 s"),
        (1_834_000, "1.8 s"),
        (59_949_999, "59.9 s"),
        (59_950_000, "1 min 0 s"),
        (125_000_000, "2 min 5 s"),
        (3_599_499_999, "59 min 59 s"),
        (3_599_600_000, "1 h 0 min"),
        (3_720_000_000, "1 h 2 min"),
        (3_600_000_000 * 1234, "1,234 h 0 min"),
    ],
)
def test_durations(duration_us: int, text: str) -> None:
    assert elapsed(duration_us) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (10_189, "10 KiB"),
        (41 * 2**20, "41 MiB"),
        (2**20 - 1, "1.0 MiB"),
        (2_040_109_465, "1.9 GiB"),
        (2**63, "8.0 EiB"),
        (2**75, "32768 EiB"),
    ],
)
def test_sizes(size_bytes: int, text: str) -> None:
    assert size(size_bytes) == text


def test_a_moment_is_shown_in_utc() -> None:
    assert moment(1_795_953_603_999) == "2026-11-29 12:00:03 UTC"


@pytest.mark.parametrize(
    ("time_ms", "text"), [(2**62, "9999-12-31T23:59:59.999Z"), (-(2**62), "0001-01-01T00:00:00.000Z")]
)
def test_what_no_calendar_has_is_its_first_or_last_moment(time_ms: int, text: str) -> None:
    assert time_text(time_ms) == text
