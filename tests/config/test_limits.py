"""Limits and weights: their bounds, which are allowed values, and the sentences on the other side of them."""

from datetime import timedelta
from typing import Any

import pytest

from runwick.config.check import check_job_settings, check_pools
from runwick.config.limits import RATE_WINDOW, UNIQUE_WINDOW
from runwick.contracts import (
    LaneSelection,
    PerResource,
    RollingWindow,
    RollingWindowPerResource,
    UniqueWithinWindow,
)
from runwick.contracts.dispatching import UNIQUE_WINDOW_MAX_MS
from runwick.contracts.jobs import JobSettings
from runwick.contracts.limits import RATE_WINDOW_MAX_MS, RATE_WINDOW_MIN_MS
from runwick.declarations.pools import Pool

MS = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


def key(job: Any) -> str:
    return "key"


def refusals(**settings: Any) -> list[str]:
    problems = check_job_settings("job", JobSettings(**settings))
    assert {problem.code for problem in problems} <= {"invalid_policy"}
    return [problem.message for problem in problems]


@pytest.mark.parametrize(
    "settings",
    [
        {"max_concurrent": 1},
        {"max_concurrent": 1_000_000},
        {"per_resource": ()},
        {"per_resource": (PerResource(key, 1), PerResource(key, 1_000_000))},
        {"rolling_window": RollingWindow(1, SECOND)},
        {"rolling_window": RollingWindow(100_000, DAY)},
        {"rolling_window_per_resource": (RollingWindowPerResource(key, 100_000, SECOND + MS),)},
        {"unique_within_window": UniqueWithinWindow(key, MS)},
        {"unique_within_window": UniqueWithinWindow(key, 3_650 * DAY)},
    ],
    ids=", ".join,
)
def test_bounds_are_allowed(settings: dict[str, Any]) -> None:
    assert refusals(**settings) == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"max_concurrent": 0}, "max_concurrent (0) must be ≥ 1. Raise it to 1 or more."),
        ({"max_concurrent": 1_000_001}, "max_concurrent (1000001) must be ≤ 1000000. Lower it to 1000000 or less."),
        ({"max_concurrent": True}, "max_concurrent (bool True) must be a whole number."),
        ({"max_concurrent": 2.0}, "max_concurrent (float 2.0) must be a whole number."),
        (
            {"per_resource": (PerResource(key, 1), PerResource(key, 0))},
            "per_resource[1] capacity (0) must be ≥ 1. Raise it to 1 or more.",
        ),
        (
            {"rolling_window": RollingWindow(100_001, SECOND)},
            "rolling_window max_executions (100001) must be ≤ 100000. Lower it to 100000 or less.",
        ),
        (
            {"rolling_window": RollingWindow(1, SECOND - MS)},
            "rolling_window window (999 ms) must be ≥ 1000 ms. Raise it to 1 s or more.",
        ),
        (
            {"rolling_window": RollingWindow(1, DAY + MS)},
            "rolling_window window (86400001 ms) must be ≤ 86400000 ms. Lower it to 24 h or less.",
        ),
        (
            {"rolling_window": RollingWindow(1, SECOND + MS / 2)},
            "rolling_window window (1000.5 ms) must be a whole number of milliseconds. Round it to 1000 ms or 1001 ms.",
        ),
        (
            {"rolling_window_per_resource": (RollingWindowPerResource(key, 1, 60),)},  # type: ignore[arg-type]
            "rolling_window_per_resource[0] window (int 60) must be a datetime.timedelta. "
            "Write it as timedelta(seconds=…).",
        ),
        (
            {"unique_within_window": UniqueWithinWindow(key, 0 * MS)},
            "unique_within_window window (0 ms) must be > 0 ms. Give a positive duration.",
        ),
        (
            {"unique_within_window": UniqueWithinWindow(key, 3_650 * DAY + MS)},
            "unique_within_window window (315360000001 ms) must be ≤ 315360000000 ms. Lower it to 87600 h or less.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_limit_out_of_bounds_gives_exactly_its_sentence(settings: dict[str, Any], sentence: str) -> None:
    assert refusals(**settings) == [sentence]


def test_the_bounds_are_those_of_the_store() -> None:
    assert (RATE_WINDOW.minimum, RATE_WINDOW.maximum) == (RATE_WINDOW_MIN_MS * MS, RATE_WINDOW_MAX_MS * MS)
    assert UNIQUE_WINDOW.maximum == UNIQUE_WINDOW_MAX_MS * MS


def pool(**options: Any) -> Pool:
    return Pool("main", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"queues": {"pdf": 1, "reports": 1_000}},
        {"lane_weights": (1, 1, 1_000)},
        *({"lane_selection": mode} for mode in LaneSelection),
    ],
    ids=repr,
)
def test_weights_that_pass(options: dict[str, Any]) -> None:
    assert check_pools([pool(**options)], {"pdf", "reports"}, 16) == []


THREE = 'pool "main": lane_weights ({}) must be three whole numbers: (high, medium, low).'


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"queues": {"pdf": 0, "reports": 1}},
            'pool "main": weight of queue "pdf" (0) must be ≥ 1. Raise it to 1 or more.',
        ),
        (
            {"queues": {"pdf": 1_001}},
            'pool "main": weight of queue "pdf" (1001) must be ≤ 1000. Lower it to 1000 or less.',
        ),
        ({"queues": {"pdf": None}}, 'pool "main": weight of queue "pdf" (NoneType None) must be a whole number.'),
        ({"queues": {5: 1}}, 'pool "main" has queues (5,); they must be a tuple of names, or names with weights.'),
        (
            {"queues": {}},
            'pool "main" subscribes to no queue. Give it at least one queue that a job uses or rw.queue declares.',
        ),
        ({"lane_weights": (6, 0, 1)}, 'pool "main": lane weight medium (0) must be ≥ 1. Raise it to 1 or more.'),
        ({"lane_weights": (6, 3, True)}, 'pool "main": lane weight low (bool True) must be a whole number.'),
        ({"lane_weights": (6, 3)}, THREE.format("(6, 3)")),
        ({"lane_weights": {"high": 6, "medium": 3, "low": 1}}, THREE.format("{'high': 6, 'medium': 3, 'low': 1}")),
        (
            {"lane_selection": "strict"},
            "pool \"main\": lane_selection ('strict') must be one of LaneSelection.WEIGHTED, "
            "LaneSelection.STRICT_WITH_AGING, LaneSelection.STRICT.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_share_that_is_none_gives_exactly_its_problem(options: dict[str, Any], text: str) -> None:
    (problem,) = check_pools([pool(**options)], {"pdf", "reports"}, 16)
    assert problem.text == text
    assert problem.code == ("pool_without_queue" if options == {"queues": {}} else "invalid_pool")
