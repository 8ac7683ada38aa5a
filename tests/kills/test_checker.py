"""The checker itself: it must find what it is for."""

from tests.kills.application import MARKS
from tests.kills.fire import Mark, completed, overlaps


def run(number: int, attempt: str, *times_ns: int) -> list[Mark]:
    return [Mark(number, attempt, 1, step, at_ns) for step, at_ns in enumerate(times_ns)]


def test_runs_one_after_the_other_do_not_overlap() -> None:
    assert overlaps([*run(1, "a", 10, 20), *run(1, "b", 21, 30, 40, 50)]) == []


def test_a_mark_of_an_earlier_run_after_a_later_one_began_is_found() -> None:
    assert overlaps([*run(1, "a", 10, 20, 45), *run(1, "b", 21, 30, 40, 50)]) == ["job 1: b began before a had ended"]


def test_runs_of_different_jobs_may_overlap() -> None:
    assert overlaps([*run(1, "a", 10, 50), *run(2, "b", 20, 30)]) == []


def test_only_a_run_that_reached_its_end_completes_its_job() -> None:
    assert completed([*run(1, "a", 1, 2), *run(2, "b", *range(MARKS))]) == {2}
