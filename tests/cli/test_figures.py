"""Figures and tables for people."""

import pytest

from runwick.cli.figures import elapsed, moment, size
from runwick.cli.tables import lay_out_table


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


def test_a_table_is_aligned_and_leaves_out_what_nobody_knows() -> None:
    rows = [["1", "crashed", None, "1.8 s", None], ["12", "ok", None, None, None]]
    assert lay_out_table(["#", "outcome", "why", "wall", "cpu"], rows) == (
        "  #   outcome  wall\n"
        "  1   crashed  1.8 s\n"
        "  12  ok       –"
    )  # fmt: skip


def test_a_cell_cannot_steer_the_terminal() -> None:
    assert lay_out_table(["why"], [["\x1b[2Jµs"]]) == "  why\n  \\x1b[2J\\xb5s"
