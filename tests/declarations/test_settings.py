"""Which layer wins, and what two places of one layer may not do."""

from datetime import timedelta
from typing import Any

import pytest

from runwick import ConfigurationError, Job, JobDefaults, Priority, Problem, Runwick
from runwick.contracts.policies import JobPolicy
from runwick.declarations.catalog import JobEntry


class Report(Job):
    number: int


def entry(
    *, defaults: JobDefaults | None = None, declared: dict[str, Any] | None = None, **configured: Any
) -> JobEntry:
    rw = Runwick("shop", store="memory://", job_defaults=defaults)
    rw.job("reports.build", **declared or {})(Report)
    if configured:
        rw.configure_job(Report, **configured)
    return rw.catalog.by_record[Report]


def problems(rw: Runwick) -> list[Problem]:
    with pytest.raises(ConfigurationError) as caught:
        _ = rw.catalog
    return list(caught.value.problems)


def test_the_librarys_settings() -> None:
    found = entry()
    assert (found.lane.queue, found.lane.priority) == ("default", Priority.MEDIUM)
    assert found.policy == JobPolicy(
        max_executions=3,
        execution_timeout_ms=None,
        retry_initial_ms=5_000,
        retry_max_ms=60_000,
        max_unstarted=5,
        unstarted_initial_ms=1_000,
        unstarted_max_ms=30_000,
        max_crashes=3,
        error_detail="full",
    )


@pytest.mark.parametrize(
    ("setting", "values", "read"),
    [
        ("queue", ("a", "b", "c"), lambda found: found.lane.queue),
        ("priority", ("high", "low", "medium"), lambda found: found.lane.priority),
        ("max_executions", (5, 6, 7), lambda found: found.policy.max_executions),
        ("max_unstarted", (6, 7, 8), lambda found: found.policy.max_unstarted),
        ("max_crashes", (4, 5, 6), lambda found: found.policy.max_crashes),
        ("error_detail", ("message", "full", "message"), lambda found: found.policy.error_detail),
    ],
)
def test_later_layers_win(setting: str, values: tuple[Any, Any, Any], read: Any) -> None:
    first, second, third = values
    defaults, declared = JobDefaults(**{setting: first}), {setting: second}
    assert read(entry(defaults=defaults)) == first
    assert read(entry(defaults=defaults, declared=declared)) == second
    assert read(entry(defaults=defaults, declared=declared, **{setting: third})) == third


def test_durations_become_milliseconds() -> None:
    found = entry(
        execution_timeout=timedelta(minutes=2),
        retry_delay=(timedelta(milliseconds=1), timedelta(hours=24)),
        unstarted_delay=(timedelta(seconds=2), timedelta(seconds=3)),
    ).policy
    assert found.execution_timeout_ms == 120_000
    assert (found.retry_initial_ms, found.retry_max_ms) == (1, 86_400_000)
    assert (found.unstarted_initial_ms, found.unstarted_max_ms) == (2_000, 3_000)


def test_a_layer_that_says_nothing_leaves_what_was_said() -> None:
    defaults = JobDefaults(queue="reports", execution_timeout=timedelta(seconds=10))
    found = entry(defaults=defaults, declared={"priority": "high"}, max_executions=9)
    assert (found.lane.queue, found.lane.priority) == ("reports", Priority.HIGH)
    assert (found.policy.execution_timeout_ms, found.policy.max_executions) == (10_000, 9)


def test_none_turns_an_inherited_time_limit_off() -> None:
    defaults = JobDefaults(execution_timeout=timedelta(seconds=10))
    assert entry(defaults=defaults).policy.execution_timeout_ms == 10_000
    assert entry(defaults=defaults, declared={"execution_timeout": None}).policy.execution_timeout_ms is None


def test_one_layer_must_agree_with_itself() -> None:
    rw = Runwick("shop", store="memory://")
    rw.job("reports.build", queue="reports")(Report)
    rw.configure_job(Report, max_executions=4)
    rw.configure_job(Report, max_executions=4, queue="other")
    assert rw.catalog.by_record[Report].policy.max_executions == 4
    rw.configure_job(Report, max_executions=5)
    [problem] = problems(rw)
    assert (problem.code, problem.setting) == ("setting_conflict", 'job "reports.build"')
    assert problem.message.startswith("max_executions is 4 at ")
    assert problem.message.endswith("; give it once.")
    assert problem.message.count("test_settings.py:") == 2


@pytest.mark.parametrize(
    ("settings", "code", "sentence"),
    [
        ({"max_executions": 0}, "invalid_policy", "max_executions (0) must be ≥ 1"),
        ({"max_executions": 101}, "invalid_policy", "max_executions (101) must be ≤ 100"),
        ({"max_executions": "3"}, "invalid_policy", "max_executions (str '3') must be a whole number"),
        ({"execution_timeout": timedelta(days=31)}, "invalid_policy", "execution_timeout (2678400000 ms) must be ≤"),
        ({"execution_timeout": 60}, "invalid_policy", "execution_timeout (int 60) must be a datetime.timedelta"),
        ({"retry_delay": (timedelta(0), timedelta(1))}, "invalid_policy", "retry_delay initial (0 ms) must be > 0 ms"),
        ({"retry_delay": (timedelta(2), timedelta(1))}, "invalid_policy", "retry_delay initial"),
        ({"retry_delay": timedelta(1)}, "invalid_policy", "must be a pair of timedelta, (initial, maximum)"),
        ({"max_unstarted": 0}, "invalid_policy", "max_unstarted (0) must be ≥ 1"),
        ({"max_crashes": 0}, "invalid_policy", "max_crashes (0) must be ≥ 1"),
        ({"error_detail": "none"}, "invalid_policy", 'error_detail ("none") must be "full" or "message"'),
        ({"error_detail": None}, "invalid_policy", 'error_detail (None) must be "full" or "message"'),
        ({"queue": "two words"}, "invalid_name", 'queue "two words" is not a name'),
        ({"priority": "urgent"}, "invalid_priority", 'priority "urgent" must be high, medium or low'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("layer", ["declared", "configured", "defaults"])
def test_a_setting_out_of_bounds_is_refused_in_every_layer(
    layer: str, settings: dict[str, Any], code: str, sentence: str
) -> None:
    rw = Runwick("shop", store="memory://", job_defaults=JobDefaults(**settings) if layer == "defaults" else None)
    rw.job("reports.build", **settings if layer == "declared" else {})(Report)
    if layer == "configured":
        rw.configure_job(Report, **settings)
    found = problems(rw)[0]
    assert (found.code, found.setting) == (code, "job_defaults" if layer == "defaults" else 'job "reports.build"')
    assert sentence in found.message
