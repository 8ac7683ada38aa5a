import sys
import textwrap
from pathlib import Path

import pytest

from tests.hot_paths import ceilings, guard
from tests.hot_paths.guard import OPENING, UNKNOWN, Ceiling, ceiling_for, complaints, renewed, written
from tests.hot_paths.instructions import Instructions

CEILINGS = {
    "store act: trips": Ceiling(2, "one to ask, one to tell"),
    "store act: bytes": Ceiling(107, "all that is written"),
    "store drain: trips": Ceiling(0.3, "many jobs share them", varies=True),
    "other act: trips": Ceiling(1, "of another group"),
}
COUNTS = {"store act: trips": 2.0, "store act: bytes": 100.0, "store drain: trips": 0.1}


def test_counts_between_their_ceilings_and_seven_tenths_of_them_are_right() -> None:
    assert complaints("store", COUNTS, CEILINGS) == []
    assert complaints("store", {**COUNTS, "store act: bytes": 75.0}, CEILINGS) == []


def test_a_count_above_its_ceiling_is_shown_with_it() -> None:
    (found,) = complaints("store", {**COUNTS, "store act: trips": 3.0}, CEILINGS)
    assert found == "store act: trips: 3, at most 2 allowed (one to ask, one to tell)"


def test_a_count_far_below_its_ceiling_wants_that_tightened_unless_it_varies() -> None:
    found = complaints("store", {**COUNTS, "store act: bytes": 74.0, "store drain: trips": 0.01}, CEILINGS)
    assert found == ["store act: bytes: only 74, tighten the ceiling of 107"]


def test_what_is_not_in_the_table_and_what_is_not_counted_is_named() -> None:
    counts = {"store act: trips": 2.0, "store drain: trips": 0.1, "store act: rows": 1.0}
    assert complaints("store", counts, CEILINGS) == [
        "store act: bytes is not counted any more: take it out of the table",
        "store act: rows is not in the table; it is 1",
    ]


def test_instructions_of_another_python_are_held_more_loosely(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"worker job: instructions": Ceiling(100, "a Python's own")}
    monkeypatch.setattr(guard, "COUNTED_ON", sys.version_info[:2])
    assert complaints("worker", {"worker job: instructions": 110.0}, table) != []
    monkeypatch.setattr(guard, "COUNTED_ON", (3, 0))
    assert complaints("worker", {"worker job: instructions": 110.0}, table) == []
    assert complaints("worker", {"worker job: instructions": 141.0}, table) != []


def test_the_table_is_renewed_where_it_is_not_right_any_more_and_keeps_its_reasons() -> None:
    counts = {"store act: trips": 1.0, "store act: bytes": 99.0, "store drain: trips": 1.0, "store act: new": 1.0}
    assert list(renewed(counts, CEILINGS).items()) == [
        ("store act: trips", Ceiling(1, "one to ask, one to tell")),
        ("store act: bytes", Ceiling(107, "all that is written")),
        ("store drain: trips", Ceiling(3, "many jobs share them", varies=True)),
        ("store act: new", Ceiling(1, UNKNOWN)),
        ("other act: trips", Ceiling(1, "of another group")),
    ]


def test_the_table_is_written_as_the_project_is_formatted() -> None:
    source = Path(ceilings.__file__).read_text()
    assert written(ceilings.CEILINGS) == OPENING + source.partition(OPENING)[2]
    long = written({"store act: trips": Ceiling(0.5, "why " * 25, varies=True)})
    assert long.splitlines()[1:4] == [
        '    "store act: trips": Ceiling(',
        f'        0.5, "{"why " * 25}", varies=True',
        "    ),",
    ]


@pytest.mark.parametrize("count", [0.0, 1.0, 20.0, 21.0, 0.0123, 7.5, 812.3, 15_633.75])
def test_what_was_counted_meets_the_ceiling_that_is_made_of_it(count: float) -> None:
    at_most = ceiling_for(count)
    assert complaints("a", {"a b: c": count}, {"a b: c": Ceiling(at_most, "")}) == []
    assert complaints("a", {"a b: c": count * 1.1 + 0.001}, {"a b: c": Ceiling(at_most, "")}) != []


def test_instructions_are_the_same_each_time_and_more_for_more_work() -> None:
    assert _counted(10) == _counted(10)
    assert _counted(20) - _counted(10) == 10 * (_counted(11) - _counted(10)) > 0


def _counted(times: int) -> int:
    instructions = Instructions()
    with instructions.counted():
        for _ in range(times):
            textwrap.wrap("a few words that are wrapped", 10)
        with instructions.paused():
            textwrap.wrap("a few words that are wrapped", 10)
    return instructions.count
