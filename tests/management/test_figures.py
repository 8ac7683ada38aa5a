"""Figures of many runs, and how they went over time."""

import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runwick.contracts.activity import ExecutorActivity
from runwick.contracts.listing import RUNS_MAX, RunRecord
from runwick.management.desk.figures import distribution, point_body, rank_correlation, type_body, value_at
from runwick.management.desk.trends import (
    CORES_OVER_MS,
    STEP_LADDER_MS,
    STEPS,
    cores_used,
    trend_of,
    window_of,
)
from tests.management.runs import NOW_MS, a_run


class TestDistributions:
    def test_every_figure_is_one_of_the_values(self) -> None:
        body = distribution(range(100, 0, -1))
        assert body is not None
        assert (body.count, body.minimum, body.maximum) == (100, 1, 100)
        assert (body.p25, body.p50, body.p75, body.p90, body.p99) == (25, 50, 75, 90, 99)
        assert distribution([]) is None

    @given(st.lists(st.integers(0, 10**12), min_size=1), st.floats(0, 1))
    def test_so_large_a_share_does_not_exceed_it(self, values: list[int], share: float) -> None:
        ordered = sorted(values)
        found = value_at(ordered, share)
        assert found in values
        assert sum(value <= found for value in values) >= share * len(values) - 1e-6
        assert found == ordered[0] or sum(value < found for value in values) < share * len(values) + 1e-6

    @pytest.mark.parametrize(
        ("pairs", "expected"),
        [
            ([(1, 10), (2, 20), (3, 10**9)], 1.0),
            ([(1, 3), (2, 2), (3, 1)], -1.0),
            ([(1, 1), (1, 2)], None),
            ([(1, 5), (2, 5)], None),
            ([], None),
        ],
    )
    def test_ranks_correlate(self, pairs: list[tuple[int, int]], expected: float | None) -> None:
        assert rank_correlation(pairs) == (None if expected is None else pytest.approx(expected))

    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2))
    def test_equal_values_share_their_rank(self, pairs: list[tuple[int, int]]) -> None:
        def ranks(values: list[int]) -> list[float]:
            return [
                statistics.mean(i for i, other in enumerate(sorted(values), 1) if other == value) for value in values
            ]

        columns = [ranks([pair[place] for pair in pairs]) for place in (0, 1)]
        found = rank_correlation(pairs)
        if any(len(set(column)) == 1 for column in columns):
            assert found is None
        else:
            assert found == pytest.approx(statistics.correlation(*columns))

    def test_a_type_counts_failures_alone_as_such(self) -> None:
        runs = [
            a_run(0, outcome="cancelled", code="cancel_requested"),
            a_run(1, outcome="interrupted", code="worker_stopping"),
            a_run(2, outcome="failed", code="no_stock"),
            a_run(3, outcome="crashed", code="executor_crashed"),
            a_run(4, outcome="failed_permanently", code="no_stock"),
            a_run(5, wall_us=7, cpu_user_us=2, cpu_system_us=1, cpu_children_us=10),
        ]
        body = type_body("image.thumbnail", runs)
        assert (body.runs, body.failed) == (6, 3)
        assert list(body.codes.items()) == [("no_stock", 2), ("executor_crashed", 1)]
        assert body.wall_us is not None
        assert body.cpu_us is not None
        assert (body.wall_us.count, body.cpu_us.maximum) == (1, 13)
        assert body.last_at == "2025-06-15T15:06:40.000Z"
        assert (point_body(runs[5]).cpu_us, point_body(runs[0]).cpu_us) == (13, None)


def used(runs: Sequence[RunRecord], executors: Sequence[ExecutorActivity]) -> tuple[float, int]:
    """Cores, and the time of which they are the mean."""
    cores = cores_used(runs, executors, NOW_MS)
    assert cores is not None
    return round(cores.mean, 6), cores.over_ms


class TestTrends:
    def test_without_runs_it_is_a_row_of_zeros(self) -> None:
        window = window_of([], NOW_MS)
        assert trend_of([], window).values == (0,) * STEPS
        assert (window.step_ms, window.is_sampled) == (60_000, False)
        assert cores_used([], [], NOW_MS) is None

    def test_it_ends_now_with_what_has_just_ended(self) -> None:
        window = window_of([a_run()], NOW_MS)
        assert (window.until_ms, window.step_ms) == (NOW_MS, 60_000)
        runs = [a_run(ended_at_ms=at) for at in (NOW_MS, NOW_MS - 59_999, window.from_ms + 1, window.from_ms)]
        values = trend_of(runs, window).values
        assert (values[0], values[-1], sum(values)) == (1, 2, 3)

    @pytest.mark.parametrize(
        ("reaches_back_ms", "step_ms"),
        [(0, 60_000), (30 * 60_000, 60_000), (30 * 60_000 + 1, 300_000), (10**9, 3_600_000)],
    )
    def test_its_steps_hold_all_runs_where_all_were_read(self, reaches_back_ms: int, step_ms: int) -> None:
        window = window_of([a_run(ended_at_ms=NOW_MS - reaches_back_ms)], NOW_MS)
        assert (window.step_ms, window.is_sampled) == (step_ms, False)

    @pytest.mark.parametrize(
        ("reaches_back_ms", "step_ms", "is_sampled"),
        [(400, 1_000, True), (31_000, 1_000, False), (31 * 5_000, 5_000, False), (10**9, 3_600_000, False)],
    )
    def test_where_more_ended_than_was_read_the_steps_are_full(
        self, reaches_back_ms: int, step_ms: int, is_sampled: bool
    ) -> None:
        runs = [a_run(ended_at_ms=NOW_MS)] * (RUNS_MAX - 1) + [a_run(ended_at_ms=NOW_MS - reaches_back_ms)]
        window = window_of(runs, NOW_MS)
        assert (window.step_ms, window.is_sampled) == (step_ms, is_sampled)
        assert step_ms in STEP_LADDER_MS

    def test_cores_are_what_was_used_within_the_last_minute(self) -> None:
        from_ms, used_us = NOW_MS - CORES_OVER_MS, CORES_OVER_MS * 1_000
        half = a_run(begun_at_ms=from_ms - 10_000, ended_at_ms=from_ms + 10_000, cpu_user_us=used_us, cpu_system_us=0)
        whole = a_run(begun_at_ms=NOW_MS - 10, ended_at_ms=NOW_MS, cpu_user_us=used_us, cpu_system_us=0)
        before = a_run(ended_at_ms=from_ms, cpu_user_us=used_us, cpu_system_us=0)
        running = ExecutorActivity(number=1, pool="main", phase="handle", begun_at_ms=NOW_MS - 5, cpu_us=used_us)
        assert used([half], []) == (0.5, CORES_OVER_MS)
        assert used([half, whole, before], [running]) == (2.5, CORES_OVER_MS)
        assert cores_used([a_run()], [], NOW_MS) is None

    def test_one_executor_that_works_on_is_seen_before_its_run_ends(self) -> None:
        long = ExecutorActivity(
            number=1, pool="main", phase="handle", begun_at_ms=NOW_MS - 2 * CORES_OVER_MS, cpu_us=60_000_000
        )
        young = ExecutorActivity(number=2, pool="main", phase="handle", begun_at_ms=NOW_MS - 15_000, cpu_us=12_000_000)
        assert used([], [long]) == (0.5, CORES_OVER_MS)
        assert used([], [young]) == (0.2, CORES_OVER_MS)

    def test_where_more_ended_than_was_read_cores_are_over_what_was(self) -> None:
        run = a_run(begun_at_ms=NOW_MS - 5, ended_at_ms=NOW_MS, cpu_user_us=10_000_000, cpu_system_us=0)
        runs = [run] * (RUNS_MAX - 1) + [a_run(ended_at_ms=NOW_MS - 20_000)]
        assert used(runs, []) == (0.5 * (RUNS_MAX - 1), 20_000)
        assert cores_used([run] * RUNS_MAX, [], NOW_MS) is None
