"""Who gets what, with executors whose other ends the test plays."""

from collections.abc import Iterator

import pytest

from runwick_supervisor.expectations import AHEAD_MS, Expectations
from runwick_supervisor.placement import REFILL_MS, Placement
from tests.attempts import an_attempt
from tests.supervisor.test_executor import FENCED_S, Played

TAKES_MS = 2.0


@pytest.fixture
def pair() -> Iterator[list[Played]]:
    """Two executors that are ready and hold nothing."""
    made = [Played(), Played()]
    made[1].executor.number = 2
    yield made
    for played in made:
        played.close()


def placement(pair: list[Played], takes_ms: float = TAKES_MS) -> Placement:
    expectations = Expectations()
    expectations.learn(an_attempt().kind, takes_ms)
    return Placement({played.executor.number: played.executor for played in pair}, expectations, 512)


def jobs(played: Played) -> list[int]:
    return [held.attempt.job for held in played.executor.held]


def test_many_short_runs_are_given_out_evenly_and_in_order(pair: list[Played]) -> None:
    place = placement(pair)
    place.take_in([an_attempt(number) for number in range(1, 41)], 100.0, FENCED_S)
    assert {executor.number for executor in place.place(100.0)} == {1, 2}
    first, second = map(jobs, pair)
    assert len(place) == 0
    assert sorted(first + second) == list(range(1, 41))
    assert (first, second) == (sorted(first), sorted(second))
    assert abs(len(first) - len(second)) <= 1
    for played in pair:
        for _ in played.executor.held:
            played.ends.take()  # all of them were announced


def test_nobody_is_filled_beyond_100_ms_and_what_is_left_keeps_its_order(pair: list[Played]) -> None:
    place = placement(pair)
    place.take_in([an_attempt(number) for number in range(1, 111)], 100.0, FENCED_S)
    place.place(100.0)
    assert [len(played.executor.held) for played in pair] == [AHEAD_MS // TAKES_MS] * 2
    assert [held.attempt.job for held in place.waiting()] == list(range(101, 111))
    assert place.slack(100.0).ahead == 0, "what waits holds back more"


def test_what_the_head_has_run_makes_room_until_it_takes_longer_than_expected(pair: list[Played]) -> None:
    place = placement(pair, 30.0)
    place.take_in([an_attempt(number) for number in range(1, 7)], 100.0, FENCED_S)
    place.place(100.0)
    assert [len(played.executor.held) for played in pair] == [3, 3]
    assert place.slack(100.0).ahead == 0
    assert place.slack(100.021).ahead == 2, "69 ms are left of 90, and 30 more are 99"
    assert place.slack(100.031).ahead == 0, "both heads take longer than expected"


def test_executors_are_looked_at_when_the_first_has_little_left(pair: list[Played]) -> None:
    short = placement(pair)
    short.take_in([an_attempt(number) for number in range(1, 101)], 100.0, FENCED_S)
    short.place(100.0)
    assert short.refill_s(100.0) == pytest.approx(100.0 + (AHEAD_MS - REFILL_MS) / 1000)


def test_where_runs_are_not_so_short_the_end_of_the_head_is_waited_for(pair: list[Played]) -> None:
    longer = placement(pair, 24.0)
    longer.take_in([an_attempt(number) for number in (1, 2)], 100.0, FENCED_S)
    longer.place(100.0)
    assert longer.refill_s(100.0) == pytest.approx(100.024)
    assert longer.refill_s(100.030) == pytest.approx(100.030)
