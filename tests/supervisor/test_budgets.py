"""How deep an executor is filled, and how soon a dead one is replaced."""

import pytest

from runwick.contracts.attempts import Kind
from runwick_supervisor.expectations import AHEAD_MS, Expectations
from runwick_supervisor.seats import RestartBudget

KIND = Kind("reports.build", 1)


def learned(milliseconds: float, times: int = 40) -> Expectations:
    expectations = Expectations()
    for _ in range(times):
        expectations.learn(KIND, milliseconds)
    return expectations


@pytest.mark.parametrize(
    ("milliseconds", "depth"),
    [(0.01, 10_000), (1, 100), (5, 20), (49, 2), (50, 2), (51, 0), (1000, 0)],
)
def test_an_executor_is_filled_with_what_it_should_finish_in_a_hundred_milliseconds(
    milliseconds: float, depth: int
) -> None:
    assert learned(milliseconds).runs_in(AHEAD_MS) == pytest.approx(depth, abs=1)


def test_nothing_is_known_before_the_first_end() -> None:
    expectations = Expectations()
    assert expectations.expected_ms(KIND) is None
    assert expectations.runs_in(AHEAD_MS) == 0


def test_one_long_run_among_short_ones_does_not_stop_their_flow_but_several_do() -> None:
    expectations = learned(1)
    expectations.learn(KIND, 10_000)
    assert 10 < expectations.runs_in(AHEAD_MS) < 50
    for _ in range(4):
        expectations.learn(KIND, 10_000)
    assert expectations.runs_in(AHEAD_MS) == 0
    for _ in range(60):
        expectations.learn(KIND, 1)
    assert expectations.runs_in(AHEAD_MS) > 10


def test_kinds_are_told_apart_and_the_mix_is_known() -> None:
    expectations = learned(1)
    other = Kind("reports.build", 2)
    expectations.learn(other, 9)
    assert expectations.expected_ms(other) == 9
    assert expectations.expected_ms(KIND) == pytest.approx(1)
    assert expectations.typical_ms == pytest.approx(9 ** (1 / 8))


def test_a_duration_that_makes_no_sense_does_no_harm() -> None:
    expectations = learned(0)
    assert expectations.runs_in(AHEAD_MS) > 0
    for _ in range(10):
        expectations.learn(KIND, 2.0**64)
    assert expectations.runs_in(AHEAD_MS) == 0


def test_the_first_five_deaths_cost_no_pause_then_pauses_double_to_a_second() -> None:
    budget = RestartBudget()
    assert [budget.pause_s(0.1 * death) for death in range(12)] == [0.0] * 5 + [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_deaths_of_long_ago_are_forgiven() -> None:
    budget = RestartBudget()
    for death in range(20):
        budget.pause_s(0.1 * death)
    assert budget.pause_s(100.0) == 0.0
