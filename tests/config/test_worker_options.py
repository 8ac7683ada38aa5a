"""The start-up rules of worker timings: each broken alone gives exactly its problem, several are all listed."""

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runwick.config.bounds import table
from runwick.config.check import check_worker_options
from runwick.config.options import WorkerOptions
from runwick.config.timings import RULES
from runwick.contracts import ConfigurationError, Problem


def s(value: float) -> timedelta:
    return timedelta(seconds=value)


PATH = "control_retry_max_backoff + scheduler_allowance"

BROKEN_ALONE: list[tuple[dict[str, Any], str, str, str]] = [
    (
        {"shutdown_drain": s(0)},
        "invalid_timing",
        "shutdown_drain",
        "V-01: shutdown_drain (0 ms) must be > 0 ms. Give a positive duration.",
    ),
    (
        {"shutdown_cancellation": s(-2)},
        "invalid_timing",
        "shutdown_cancellation",
        "V-01: shutdown_cancellation (-2000 ms) must be > 0 ms. Give a positive duration.",
    ),
    (
        {"renewal_jitter": s(-1)},
        "invalid_timing",
        "renewal_jitter",
        "V-01: renewal_jitter (-1000 ms) must be ≥ 0 ms. Raise it to 0 s or more.",
    ),
    (
        {"shutdown_drain": timedelta(microseconds=10_000_500)},
        "invalid_timing",
        "shutdown_drain",
        "V-01: shutdown_drain (10000.5 ms) must be a whole number of milliseconds. Round it to 10000 ms or 10001 ms.",
    ),
    (
        {"shutdown_drain": timedelta(microseconds=500)},
        "invalid_timing",
        "shutdown_drain",
        "V-01: shutdown_drain (0.5 ms) must be a whole number of milliseconds. Round it to 1 ms.",
    ),
    (
        {"lease_duration": timedelta.max},
        "invalid_timing",
        "lease_duration",
        "V-01: lease_duration (86399999999999999.999 ms) must be ≤ 3153600000000 ms. Lower it to 876000 h or less.",
    ),
    (
        {"lease_duration": 90},
        "invalid_timing",
        "lease_duration",
        "V-01: lease_duration (int 90) must be a datetime.timedelta. Write it as timedelta(seconds=…).",
    ),
    (
        {"lease_safety_margin": s(60)},
        "invalid_timing",
        "lease_safety_margin",
        "V-02: lease_safety_margin (60000 ms) must be < lease_duration (60000 ms). "
        "Raise lease_duration to more than 1 min, or lower lease_safety_margin.",
    ),
    (
        {"renewal_jitter": s(15)},
        "invalid_timing",
        "renewal_jitter",
        "V-03: renewal_jitter (15000 ms) must be < renewal_interval (15000 ms). "
        "Raise renewal_interval to more than 15 s, or lower renewal_jitter.",
    ),
    (
        {"lease_duration": s(30)},
        "invalid_timing",
        "lease_duration",
        f"V-04: renewal_interval + renewal_jitter + 2 × control_request_timeout + {PATH} (31000 ms) "
        "must be < lease_duration − lease_safety_margin (20000 ms). "
        "Raise lease_duration to more than 41 s, or lower renewal_interval.",
    ),
    (
        {"control_request_timeout": s(10)},
        "invalid_timing",
        "minimum_invocation_margin",
        f"V-05: 2 × control_request_timeout + {PATH} (23000 ms) must be ≤ minimum_invocation_margin (15000 ms). "
        "Raise minimum_invocation_margin to at least 23 s, or lower control_request_timeout.",
    ),
    (
        {"lease_watchdog_interval": timedelta(milliseconds=1001)},
        "invalid_timing",
        "lease_watchdog_interval",
        "V-06: lease_watchdog_interval (1001 ms) must be ≤ 1000 ms. Lower it to 1 s or less.",
    ),
    (
        {"control_retry_initial_backoff": timedelta(milliseconds=1500)},
        "invalid_timing",
        "control_retry_initial_backoff",
        "V-07: control_retry_initial_backoff (1500 ms) must be ≤ control_retry_max_backoff (1000 ms). "
        "Raise control_retry_max_backoff to at least 1500 ms, or lower control_retry_initial_backoff.",
    ),
    (
        {"shutdown_drain": s(16)},
        "invalid_timing",
        "shutdown_budget",
        "V-09: shutdown_drain + shutdown_cancellation + shutdown_finalization (26000 ms) must be ≤ shutdown_budget "
        "(25000 ms). Raise shutdown_budget to at least 26 s, or lower shutdown_drain.",
    ),
    *(
        (
            {budget: s(4)},
            "invalid_timing",
            budget,
            f"V-10: control_request_timeout (5000 ms) must be ≤ {budget} (4000 ms). "
            f"Raise {budget} to at least 5 s, or lower control_request_timeout.",
        )
        for budget in ("claim_resolution_budget", "begin_resolution_budget", "completion_resolution_budget")
    ),
    (
        {"recovery_scan_jitter": s(5)},
        "invalid_timing",
        "recovery_scan_jitter",
        "V-11: recovery_scan_jitter (5000 ms) must be < recovery_scan_interval (5000 ms). "
        "Raise recovery_scan_interval to more than 5 s, or lower recovery_scan_jitter.",
    ),
    (
        {"safety_poll_interval": timedelta(milliseconds=49)},
        "invalid_timing",
        "safety_poll_interval",
        "V-12: safety_poll_interval (49 ms) must be ≥ 50 ms. Raise it to 50 ms or more.",
    ),
    (
        {"safety_poll_interval": timedelta(minutes=5, milliseconds=1)},
        "invalid_timing",
        "safety_poll_interval",
        "V-12: safety_poll_interval (300001 ms) must be ≤ 300000 ms. Lower it to 5 min or less.",
    ),
    (
        {"max_outstanding_attempts": 0},
        "invalid_policy",
        "max_outstanding_attempts",
        "max_outstanding_attempts (0) must be ≥ 1. Raise it to 1 or more.",
    ),
    (
        {"max_outstanding_attempts": True},
        "invalid_policy",
        "max_outstanding_attempts",
        "max_outstanding_attempts (bool True) must be a whole number.",
    ),
    (
        {"record_resource_usage": "no"},
        "invalid_policy",
        "record_resource_usage",
        "record_resource_usage (str 'no') must be True or False.",
    ),
]


def test_the_defaults_pass() -> None:
    assert check_worker_options(WorkerOptions()) == []


@pytest.mark.parametrize(("change", "code", "setting", "message"), BROKEN_ALONE, ids=lambda value: str(value)[:40])
def test_a_rule_broken_alone_gives_exactly_its_problem(
    change: dict[str, Any], code: str, setting: str, message: str
) -> None:
    assert check_worker_options(WorkerOptions(**change)) == [Problem(code, setting, message)]


def test_every_rule_has_a_case() -> None:
    numbers = {message[:4] for _, _, _, message in BROKEN_ALONE if message.startswith("V-")}
    named = {rule.number for rule in RULES} | {
        rule for option in table(WorkerOptions).values() for rule in (option.value_rule, option.bound_rule) if rule
    }
    assert numbers == named


@pytest.mark.parametrize(
    "change",
    [
        {"lease_duration": timedelta(milliseconds=41_001)},
        {"minimum_invocation_margin": s(13)},
        {"renewal_jitter": s(0), "recovery_scan_jitter": s(0)},
        {"control_retry_initial_backoff": s(1)},
        {"completion_resolution_budget": s(5)},
        {"safety_poll_interval": timedelta(milliseconds=50)},
        {"safety_poll_interval": timedelta(minutes=5)},
        {"lease_duration": s(120), "lease_safety_margin": s(20), "renewal_interval": s(30)},
    ],
    ids=str,
)
def test_the_edge_of_a_rule_passes(change: dict[str, Any]) -> None:
    assert check_worker_options(WorkerOptions(**change)) == []


def test_no_problem_hides_another() -> None:
    options = WorkerOptions(
        scheduler_allowance=timedelta(microseconds=2_000_500),
        lease_duration=s(30),
        control_request_timeout=s(10),
        shutdown_drain=s(30),
        recovery_scan_jitter=s(9),
        max_outstanding_attempts=-1,
    )
    found = [(problem.setting, problem.message[:4]) for problem in check_worker_options(options)]
    assert found == [
        ("scheduler_allowance", "V-01"),
        ("max_outstanding_attempts", "max_"),
        ("lease_duration", "V-04"),
        ("minimum_invocation_margin", "V-05"),
        ("shutdown_budget", "V-09"),
        ("recovery_scan_jitter", "V-11"),
    ]


def test_one_value_may_break_two_rules() -> None:
    options = WorkerOptions(lease_watchdog_interval=timedelta(microseconds=1_000_500))
    assert [problem.message[:4] for problem in check_worker_options(options)] == ["V-01", "V-06"]


def test_a_rule_about_no_duration_says_nothing() -> None:
    options = WorkerOptions(control_request_timeout=s(-5), shutdown_drain=s(30))
    assert [problem.message[:4] for problem in check_worker_options(options)] == ["V-01", "V-09"]


@given(st.integers(10_000, 600_000))
def test_every_heartbeat_passes_the_rules(beat_ms: int) -> None:
    beat = timedelta(milliseconds=beat_ms)
    options = WorkerOptions.from_heartbeat(beat)
    assert check_worker_options(options) == []
    assert options.lease_duration == 4 * beat
    assert timedelta(0) <= 2.5 * beat - options.usable_lease < timedelta(milliseconds=1)
    assert options.recovery_scan_interval == options.lease_duration
    assert timedelta(0) <= beat / 10 - options.renewal_jitter < timedelta(milliseconds=1)


def test_the_heartbeat_of_45_seconds() -> None:
    options = WorkerOptions.from_heartbeat(s(45))
    assert options == dataclasses.replace(
        WorkerOptions(),
        lease_duration=s(180),
        lease_safety_margin=s(67.5),
        renewal_interval=s(45),
        renewal_jitter=s(4.5),
        recovery_scan_interval=s(180),
    )
    assert options.usable_lease == s(112.5)


@pytest.mark.parametrize(
    ("beat", "message"),
    [
        (s(9.999), "heartbeat (9999 ms) must be ≥ 10000 ms. Raise it to 10 s or more."),
        (s(601), "heartbeat (601000 ms) must be ≤ 600000 ms. Lower it to 10 min or less."),
        (45, "heartbeat (int 45) must be a datetime.timedelta. Write it as timedelta(seconds=…)."),
    ],
)
def test_a_heartbeat_out_of_bounds_is_refused(beat: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        WorkerOptions.from_heartbeat(beat)
    assert refused.value.problems == (Problem("invalid_timing", "heartbeat", message),)
