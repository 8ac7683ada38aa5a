"""Store options and job settings: bounds, and the profile for web requests."""

from datetime import timedelta
from typing import Any, cast

import pytest

from runwick.config.check import check_executor_options, check_job_settings, check_store_options
from runwick.config.options import ExecutorOptions, JobDefaults, RedisOptions, SqliteOptions, StoreOptions
from runwick.config.sizes import bytes_text, parse_bytes
from runwick.contracts import InvalidArgument, Problem
from runwick.contracts.jobs import JobSettings


def test_the_defaults_of_a_sqlite_store_pass() -> None:
    assert check_store_options(StoreOptions()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"writer_busy_timeout": timedelta(milliseconds=99)},
            "writer_busy_timeout (99 ms) must be ≥ 100 ms. Raise it to 100 ms or more.",
        ),
        (
            {"writer_busy_timeout": timedelta(seconds=31)},
            "writer_busy_timeout (31000 ms) must be ≤ 30000 ms. Lower it to 30 s or less.",
        ),
        ({"reader_threads": 0}, "reader_threads (0) must be ≥ 1. Raise it to 1 or more."),
        ({"reader_threads": 9}, "reader_threads (9) must be ≤ 8. Lower it to 8 or less."),
    ],
)
def test_a_store_option_out_of_bounds(change: dict[str, Any], message: str) -> None:
    (setting,) = change
    assert check_store_options(StoreOptions(sqlite=SqliteOptions(**change))) == [
        Problem("invalid_policy", setting, message)
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"profile_recheck_interval": timedelta(milliseconds=4999)},
            "profile_recheck_interval (4999 ms) must be ≥ 5000 ms. Raise it to 5 s or more.",
        ),
        (
            {"profile_recheck_interval": timedelta(minutes=5, milliseconds=1)},
            "profile_recheck_interval (300001 ms) must be ≤ 300000 ms. Lower it to 5 min or less.",
        ),
        (
            {"command_timeout": timedelta(milliseconds=99)},
            "command_timeout (99 ms) must be ≥ 100 ms. Raise it to 100 ms or more.",
        ),
        (
            {"command_timeout": timedelta(seconds=61)},
            "command_timeout (61000 ms) must be ≤ 60000 ms. Lower it to 1 min or less.",
        ),
    ],
)
def test_a_redis_option_out_of_bounds(change: dict[str, Any], message: str) -> None:
    (setting,) = change
    assert check_store_options(StoreOptions(redis=RedisOptions(**change))) == [
        Problem("invalid_policy", setting, message)
    ]


def test_the_bounds_of_redis_options_are_allowed() -> None:
    for interval, limit in ((timedelta(seconds=5), timedelta(milliseconds=100)), (timedelta(minutes=5),) * 2):
        options = RedisOptions(profile_recheck_interval=interval, command_timeout=min(limit, timedelta(minutes=1)))
        assert check_store_options(StoreOptions(redis=options)) == []


@pytest.mark.parametrize("settings", [JobSettings(), JobDefaults.web_requests(), JobSettings(execution_timeout=None)])
def test_settings_that_pass(settings: JobSettings) -> None:
    assert check_job_settings("job_defaults", settings) == []


def test_the_profile_for_web_requests() -> None:
    assert JobDefaults.web_requests() == JobDefaults(
        max_executions=5,
        retry_delay=(timedelta(seconds=30), timedelta(hours=1)),
        execution_timeout=timedelta(minutes=10),
        error_detail="message",
    )


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (
            {"queue": "a b"},
            "invalid_name",
            "queue \"a b\" is not a name: it must be letters, digits, '.', '_' or '-', starting with a letter or "
            "digit (ASCII).",
        ),
        ({"priority": "urgent"}, "invalid_priority", 'priority "urgent" must be high, medium or low.'),
        (
            {"max_executions": 101},
            "invalid_policy",
            "max_executions (101) must be ≤ 100. Lower it to 100 or less.",
        ),
        ({"max_executions": 0}, "invalid_policy", "max_executions (0) must be ≥ 1. Raise it to 1 or more."),
        ({"max_unstarted": 0}, "invalid_policy", "max_unstarted (0) must be ≥ 1. Raise it to 1 or more."),
        ({"max_crashes": 0}, "invalid_policy", "max_crashes (0) must be ≥ 1. Raise it to 1 or more."),
        (
            {"execution_timeout": timedelta(days=30, milliseconds=1)},
            "invalid_policy",
            "execution_timeout (2592000001 ms) must be ≤ 2592000000 ms. Lower it to 720 h or less.",
        ),
        (
            {"execution_timeout": timedelta(0)},
            "invalid_policy",
            "execution_timeout (0 ms) must be > 0 ms. Give a positive duration.",
        ),
        (
            {"retry_delay": (timedelta(0), MINUTE)},
            "invalid_policy",
            "retry_delay initial (0 ms) must be > 0 ms. Give a positive duration.",
        ),
        (
            {"retry_delay": (MINUTE, timedelta(hours=25))},
            "invalid_policy",
            "retry_delay maximum (90000000 ms) must be ≤ 86400000 ms. Lower it to 24 h or less.",
        ),
        (
            {"unstarted_delay": (MINUTE, MINUTE / 2)},
            "invalid_policy",
            "unstarted_delay initial (60000 ms) must be ≤ its maximum (30000 ms). "
            "Raise the maximum, or lower the initial delay.",
        ),
        (
            {"retry_delay": 5},
            "invalid_policy",
            "retry_delay (5) must be a pair of timedelta, (initial, maximum).",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_setting_out_of_bounds_gives_exactly_its_problem(change: dict[str, Any], code: str, message: str) -> None:
    assert check_job_settings('job "image.thumbnail"', JobSettings(**change)) == [
        Problem(code, 'job "image.thumbnail"', message)
    ]


def test_all_settings_are_checked_at_once() -> None:
    settings = JobSettings(queue="", priority=cast("Any", "no"), max_executions=0, retry_delay=(MINUTE, timedelta(0)))
    assert [problem.code for problem in check_job_settings("job_defaults", settings)] == [
        "invalid_name",
        "invalid_priority",
        "invalid_policy",
        "invalid_policy",
    ]


def test_the_defaults_of_executors_pass() -> None:
    assert check_executor_options(ExecutorOptions()) == []


@pytest.mark.parametrize(
    ("change", "setting", "message"),
    [
        ({"memory_soft": 1}, "memory_soft", "memory_soft (1) must be ≥ 1MiB. Raise it to 1MiB or more."),
        (
            {"memory_hard": 2**40 + 1},
            "memory_hard",
            "memory_hard (1099511627777) must be ≤ 1TiB. Lower it to 1TiB or less.",
        ),
        (
            {"memory_hard": "2GiB"},
            "memory_hard",
            "memory_hard (str '2GiB') must be a whole number of bytes. "
            "Write 2 GiB as 2 * 2**30 in code and as 2GiB in an environment variable.",
        ),
        (
            {"memory_soft": 2**30, "memory_hard": 2**30},
            "memory_soft",
            "memory_soft (1GiB) must be < memory_hard (1GiB). Raise memory_hard, or lower memory_soft.",
        ),
        ({"recycle_attempts": 0}, "recycle_attempts", "recycle_attempts (0) must be ≥ 1. Raise it to 1 or more."),
        (
            {"recycle_age": timedelta(milliseconds=999)},
            "recycle_age",
            "recycle_age (999 ms) must be ≥ 1000 ms. Raise it to 1 s or more.",
        ),
        (
            {"oom_score_adj": 1_001},
            "oom_score_adj",
            "oom_score_adj (1001) must be ≤ 1000. Lower it to 1000 or less.",
        ),
        ({"nice": 20}, "nice", "nice (20) must be ≤ 19. Lower it to 19 or less."),
        ({"pin": 1}, "pin", "pin (int 1) must be True or False."),
        ({"record_allocations": 1}, "record_allocations", "record_allocations (int 1) must be True or False."),
    ],
)
def test_an_option_of_executors_out_of_bounds(change: dict[str, Any], setting: str, message: str) -> None:
    assert check_executor_options(ExecutorOptions(**change)) == [Problem("invalid_policy", setting, message)]


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("0", 0), ("4097", 4_097), ("1KiB", 1_024), ("256MiB", 2**28), ("3TiB", 3 * 2**40)]
)
def test_sizes_are_read_and_written_alike(text: str, size_bytes: int) -> None:
    assert (parse_bytes(text), bytes_text(size_bytes)) == (size_bytes, text)


@pytest.mark.parametrize("text", ["", "2 GiB", "2GB", "-1", "1.5GiB", "MiB", "2gib", "1" * 16])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="a size is written like"):
        parse_bytes(text)
