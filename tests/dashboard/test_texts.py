"""Figures as people read them, and foreign text that cannot move what is beside it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runwick.management.dashboard import texts


@pytest.mark.parametrize(
    ("duration_us", "shown"),
    [
        (None, "–"),
        (0, "0 µs"),
        (850, "850 µs"),
        (12_000, "12 ms"),
        (1_849_000, "1.8 s"),
        (59_949_000, "59.9 s"),
        (60_000_000, "1 min"),
        (125_000_000, "2 min 5 s"),
        (3_720_000_000, "1 h 2 min"),
        (200_000_000_000, "2 d 7 h"),
    ],
)
def test_durations(duration_us: int | None, shown: str) -> None:
    assert texts.elapsed(duration_us) == shown


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [(None, "–"), (0, "0 B"), (1023, "1023 B"), (9_728, "9.5 KiB"), (43 << 20, "43 MiB"), (2_040_109_466, "1.9 GiB")],
)
def test_sizes(size_bytes: int | None, shown: str) -> None:
    assert texts.size(size_bytes) == shown


@pytest.mark.parametrize(("number", "shown"), [(0, "0"), (9_999, "9,999"), (10_000, "10,000+"), (20_000, "10,000+")])
def test_counts_end_where_counting_ended(number: int, shown: str) -> None:
    assert texts.capped(number) == shown


def test_times_are_told_by_their_distance() -> None:
    now = "2026-11-29T12:04:31.000Z"
    assert texts.clock(now) == "12:04:31"
    assert texts.moment(now) == "2026-11-29 12:04:31"
    assert texts.ago("2026-11-29T12:01:29.000Z", now) == "3 min 2 s ago"
    assert texts.ago("2026-11-29T12:04:35.000Z", now) == "in 4.0 s"
    assert texts.ago("2026-11-29T12:04:30.900Z", now) == "now"
    assert texts.ago(None, now) == "–"


UNSEEN = {"Cc", "Cs", "Zl", "Zp"}
TURNING = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_in_a_foreign_line_hides_or_turns(text: str) -> None:
    shown = texts.line(text)
    assert len(shown) <= texts.LINE_MAX
    assert not {unicodedata.category(character) for character in shown} & UNSEEN
    assert not set(shown) & TURNING


def test_a_long_foreign_text_is_cut_and_says_so() -> None:
    assert texts.line("x" * 1_000_000) == "x" * (texts.LINE_MAX - 1) + "…"
    shown = texts.block("y" * 1_000_000)
    assert len(shown) < texts.BLOCK_MAX + 100
    assert shown.endswith("… cut here: 900,000 more characters")


def test_a_block_keeps_its_lines_and_tabs() -> None:
    assert texts.block("one\n\ttwo\u202e\x1b[31m") == "one\n\ttwo\ufffd\ufffd[31m"
