"""What the environment says: above code, and never silently without effect."""

from datetime import timedelta

import pytest

from runwick.config.numeric import INHERIT
from runwick.config.options import ExecutorOptions, SqliteOptions, WorkerOptions
from runwick.config.sources import Environment, read_environment
from runwick.contracts import Problem


def test_an_empty_environment_says_nothing() -> None:
    assert read_environment({"PATH": "/bin"}) == Environment()


def test_the_environment_stands_above_code_and_code_above_the_default() -> None:
    environment = read_environment(
        {
            "RUNWICK_STORE": "sqlite:///elsewhere.db",
            "RUNWICK_EXECUTORS": "3",
            "RUNWICK_LEASE_DURATION": "90s",
            "RUNWICK_RECORD_RESOURCE_USAGE": "false",
            "RUNWICK_READER_THREADS": "4",
        }
    )
    assert (environment.store, environment.executors, environment.problems) == ("sqlite:///elsewhere.db", 3, ())
    code = WorkerOptions(lease_duration=timedelta(seconds=70), renewal_interval=timedelta(seconds=20))
    assert environment.applied_to(code) == WorkerOptions(
        lease_duration=timedelta(seconds=90), renewal_interval=timedelta(seconds=20), record_resource_usage=False
    )
    assert environment.applied_to(SqliteOptions()) == SqliteOptions(reader_threads=4)


def test_options_of_executors_are_read_with_their_units() -> None:
    environment = read_environment(
        {
            "RUNWICK_MEMORY_SOFT": "256MiB",
            "RUNWICK_MEMORY_HARD": "2147483648",
            "RUNWICK_RECYCLE_AGE": "12h",
            "RUNWICK_RECYCLE_ATTEMPTS": "1000",
            "RUNWICK_COMPILED_PART": "false",
            "RUNWICK_NICE": "5",
            "RUNWICK_PIN": "true",
        }
    )
    assert environment.problems == ()
    assert environment.applied_to(ExecutorOptions(oom_score_adj=0)) == ExecutorOptions(
        memory_soft=256 * 2**20,
        memory_hard=2 * 2**30,
        recycle_age=timedelta(hours=12),
        recycle_attempts=1_000,
        compiled_part=False,
        oom_score_adj=0,
        nice=5,
        pin=True,
    )


def test_what_must_be_known_before_the_application_is_imported() -> None:
    environment = read_environment({"RUNWICK_NUMERIC_THREADS": "inherit", "RUNWICK_PRELOAD": "numpy,numpy,,pandas"})
    assert environment == Environment(numeric_threads=INHERIT, preload=("numpy", "pandas"))
    assert read_environment({"RUNWICK_NUMERIC_THREADS": "8"}).numeric_threads == 8


def test_the_store_is_not_part_of_the_repr() -> None:
    assert "secret" not in repr(read_environment({"RUNWICK_STORE": "postgresql://user:secret@db/app"}))


@pytest.mark.parametrize(
    ("variable", "text", "code", "message"),
    [
        (
            "RUNWICK_LEASE_DURATION",
            "90",
            "invalid_timing",
            "expected a duration such as 250ms, 15s, 2min or 24h (one whole number, one unit), got '90'.",
        ),
        (
            "RUNWICK_WRITER_BUSY_TIMEOUT",
            "",
            "invalid_policy",
            "expected a duration such as 250ms, 15s, 2min or 24h (one whole number, one unit), got ''.",
        ),
        (
            "RUNWICK_MEMORY_HARD",
            "2 GB",
            "invalid_policy",
            "a size is written like 256MiB or 2GiB, this is '2 GB'.",
        ),
        ("RUNWICK_EXECUTORS", "two", "invalid_policy", "expected a whole number, got 'two'."),
        ("RUNWICK_EXECUTORS", "0", "invalid_policy", "RUNWICK_EXECUTORS (0) must be ≥ 1. Raise it to 1 or more."),
        ("RUNWICK_RECORD_RESOURCE_USAGE", "no", "invalid_policy", "expected true or false, got 'no'."),
        (
            "RUNWICK_LEASE_DURATON",
            "90s",
            "unknown_setting",
            "RUNWICK_LEASE_DURATON is no setting. Did you mean RUNWICK_LEASE_DURATION?",
        ),
        (
            "RUNWICK_LEASEDURATION",
            "90s",
            "unknown_setting",
            "RUNWICK_LEASEDURATION is no setting. Did you mean RUNWICK_LEASE_DURATION?",
        ),
        (
            "RUNWICK_lease_duration",
            "90s",
            "unknown_setting",
            "RUNWICK_lease_duration is no setting. Did you mean RUNWICK_LEASE_DURATION?",
        ),
        ("RUNWICK_EXECUTOR", "2", "unknown_setting", "RUNWICK_EXECUTOR is no setting. Did you mean RUNWICK_EXECUTORS?"),
        (
            "RUNWICK_STROE",
            "sqlite:///a.db",
            "unknown_setting",
            "RUNWICK_STROE is no setting. Did you mean RUNWICK_STORE?",
        ),
    ],
)
def test_a_variable_that_cannot_be_meant_like_this(variable: str, text: str, code: str, message: str) -> None:
    environment = read_environment({variable: text})
    assert environment.problems == (Problem(code, variable, message),)
    assert environment.applied_to(WorkerOptions()) == WorkerOptions()


@pytest.mark.parametrize(
    "variable",
    ["RUNWICK_MIGRATION_STORE", "RUNWICK_RESTORED", "RUNWICK_RESTORE", "RUNWICK_STORE_B", "RUNWICK_PROD_SECRET"],
)
def test_names_of_the_users_own_are_left_alone(variable: str) -> None:
    assert read_environment({variable: "anything"}) == Environment()


def test_all_problems_come_at_once() -> None:
    environment = read_environment(
        {
            "RUNWICK_RENEWAL_INTERVAL": "x",
            "RUNWICK_EXECUTORS": "0",
            "RUNWICK_STROE": "s",
            "RUNWICK_SHUTDOWN_DRAIN": "1s",
        }
    )
    assert [problem.setting for problem in environment.problems] == [
        "RUNWICK_RENEWAL_INTERVAL",
        "RUNWICK_STROE",
        "RUNWICK_EXECUTORS",
    ]
    assert environment.options == {"shutdown_drain": timedelta(seconds=1)}
