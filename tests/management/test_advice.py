"""Each piece of advice: from which figures on it is given, and the rule that it names."""

from typing import Any

from runwick.contracts.listing import RunRecord
from runwick.management.desk.advice import advice_on
from runwick.management.desk.machine import Machine
from runwick.management.desk.sizing import RUNS_MIN
from tests.management.runs import MIB, a_run

MACHINE = Machine(cores=4, memory_bytes=8192 * MIB)


def runs(count: int = RUNS_MIN, **each: Any) -> list[RunRecord]:
    """So many runs alike; what is callable gets the run's number."""
    return [
        a_run(number, **{name: value(number) if callable(value) else value for name, value in each.items()})
        for number in range(count)
    ]


def advised(given: list[RunRecord], time_limit_ms: int | None = None) -> dict[str, str]:
    return {advice.code: advice.text for advice in advice_on(given, MACHINE, time_limit_ms)}


def settings(given: list[RunRecord], **known: Any) -> dict[str, str]:
    """Everything that is recommended, by option."""
    found = advice_on(given, MACHINE, None, **known)
    return {name: value for advice in found for name, value in advice.settings.items()}


def test_few_runs_are_no_ground_for_advice() -> None:
    cost = {"wall_us": 100, "cpu_user_us": 90, "cpu_system_us": 9, "rss_peak_bytes": MIB, "rss_end_bytes": MIB}
    assert advised(runs(RUNS_MIN - 1, **cost)) == {}
    assert advised(runs()) == {}
    assert set(advised(runs(**cost))) == {"memory_per_executor", "executors", "memory_limit", "cpu_bound"}


def test_an_executor_wants_what_nearly_all_runs_need_and_headroom() -> None:
    given = runs(100, wall_us=100, cpu_user_us=100, cpu_system_us=0, rss_peak_bytes=lambda number: (number + 1) * MIB)
    found = advised(given)
    assert found["memory_per_executor"] == (
        "An executor wants 124 MiB: 99 % of 100 runs peaked at 99 MiB or below, and 25 % more is headroom."
    )
    assert found["executors"].startswith("On this machine, with 4 cores and 8.0 GiB, 4 executors make sense: 52 fit")


def test_memory_bounds_how_many_executors_make_sense() -> None:
    heavy = runs(wall_us=100, cpu_user_us=50, cpu_system_us=0, rss_peak_bytes=2048 * MIB)
    text = advised(heavy)["executors"]
    assert "2 executors make sense: 2 fit into 80 % of its memory, and 8 keep its cores busy" in text
    idle = runs(wall_us=1_000_000, cpu_user_us=1, cpu_system_us=0, rss_peak_bytes=MIB)
    assert "and 32 keep its cores busy" in advised(idle)["executors"]


def test_what_keeps_a_core_busy_is_told_from_what_waits() -> None:
    def busy(cpu_us: int) -> set[str]:
        return set(advised(runs(wall_us=1_000, cpu_user_us=cpu_us, cpu_system_us=0)))

    assert busy(800) == busy(1_199) == {"cpu_bound"}
    assert busy(1_200) == busy(5_000) == {"parallel"}
    assert busy(799) == busy(301) == set()
    assert busy(300) == {"waiting"}


def test_a_run_that_was_pushed_off_its_core_wanted_it_all_the_time() -> None:
    shared = {"wall_us": 10_000, "cpu_user_us": 5_000, "cpu_system_us": 0}
    pushed = runs(**shared, switches_involuntary=3, switches_voluntary=1)
    waited = runs(**shared, switches_involuntary=3, switches_voluntary=4)
    assert set(advised(pushed)) == {"cpu_bound"}
    assert set(advised(waited)) == set()


def test_runs_that_use_several_cores_should_use_one() -> None:
    wide = runs(wall_us=10_000, cpu_user_us=40_000, cpu_system_us=0, rss_peak_bytes=MIB)
    assert "half of its runs keep 4.0 cores busy" in advised(wide)["parallel"]
    assert settings(wide) == {"numeric_threads": "1", "executors_per_core": "0.25"}
    brief = runs(wall_us=100, cpu_user_us=400, cpu_system_us=0)
    assert set(advised(brief)) == {"cpu_bound"}, "of so short a run it cannot be told"


def test_runs_near_their_time_limit_are_named() -> None:
    slow = runs(wall_us=8_000_000)
    assert (
        "99 % of those that succeed take up to 8.0 s; the limit is 10.0 s" in advised(slow, 10_000)["near_time_limit"]
    )
    assert advised(runs(wall_us=7_999_999), 10_000) == {}
    assert advised(slow) == {}


def test_without_a_declared_limit_the_shortest_run_that_was_stopped_says_it() -> None:
    stopped = runs(2, outcome="timed_out", wall_us=lambda number: 5_000_000 + number)
    found = advised([*stopped, *runs(wall_us=1_000)])["near_time_limit"]
    assert found.startswith("2 of the last 22 runs were stopped for their time limit.")
    assert "the limit is 5.0 s" in found


def test_memory_that_does_not_come_back_is_named() -> None:
    def ends_with(end_bytes: int) -> dict[str, str]:
        rest = runs(1, rss_peak_bytes=10 * MIB, rss_end_bytes=10 * MIB)
        return advised([*runs(rss_peak_bytes=110 * MIB, rss_end_bytes=end_bytes), *rest])

    assert "of 20 runs that took 64 MiB or more, 20 ended with 80 %" in ends_with(90 * MIB)["memory_kept"]
    assert "memory_kept" not in ends_with(89 * MIB)


def test_limits_of_memory_leave_room_for_every_run_that_was_seen() -> None:
    small = runs(rss_peak_bytes=40 * MIB, rss_end_bytes=30 * MIB)
    assert settings(small) == {"memory_hard": "128MiB"}
    large = runs(rss_peak_bytes=lambda number: (230 + number) * MIB, rss_end_bytes=30 * MIB)
    assert settings(large) == {"memory_hard": "448MiB"}, "twice what the largest took beyond the smallest footprint"
    rest = runs(1, rss_peak_bytes=30 * MIB, rss_end_bytes=30 * MIB)
    keeping = runs(rss_peak_bytes=130 * MIB, rss_end_bytes=130 * MIB)
    assert settings([*keeping, *rest]) == {"memory_soft": "208MiB", "memory_hard": "208MiB"}


def test_memory_that_grows_from_run_to_run_is_named() -> None:
    leaking = runs(40, rss_peak_bytes=2_000 * MIB, rss_end_bytes=lambda number: (400 - 5 * number) * MIB)
    assert "Memory grows from run to run" in advised(leaking)["memory_grows"]
    level = runs(40, rss_peak_bytes=2_000 * MIB, rss_end_bytes=lambda number: (200 + number % 2) * MIB)
    assert "memory_grows" not in advised(level)


def test_a_type_without_a_time_limit_is_told_one_that_stops_what_hangs() -> None:
    quick = runs(wall_us=lambda number: 90_000 + number)
    assert settings(quick, is_limit_known=True) == {"execution_timeout": "1s"}
    assert settings(quick) == {}
    slow = runs(wall_us=30_000_000)
    assert settings(slow, is_limit_known=True) == {"execution_timeout": "5min"}
    endless = runs(wall_us=50_000 * 1_000_000)
    assert settings(endless, is_limit_known=True) == {"execution_timeout": "144h"}
    longest = runs(wall_us=500_000 * 1_000_000)
    assert settings(longest, is_limit_known=True) == {"execution_timeout": "720h"}, "as long as a limit may be"
    assert "memory_kept" not in advised(runs(rss_peak_bytes=110 * MIB, rss_end_bytes=110 * MIB))


def test_cost_that_grows_with_the_payload_is_named() -> None:
    def grows(sign: int) -> set[str]:
        size = lambda number: 100 + number  # noqa: E731
        cost = lambda number: 10_000 + sign * 200 * number  # noqa: E731
        return set(advised(runs(payload_bytes=size, allocated_bytes=cost, cpu_user_us=cost, cpu_system_us=0)))

    assert grows(1) == {"cpu_follows_payload", "allocations_follow_payload"}
    assert grows(-1) == grows(0) == set()
    flat = runs(payload_bytes=lambda number: 100 + number, rss_peak_bytes=lambda number: 100 * MIB + number)
    assert "memory_follows_payload" not in advised(flat), "a few bytes more are no growth"


def test_deaths_for_memory_come_first() -> None:
    dead = runs(2, outcome="crashed", death=lambda number: ("out_of_memory", "memory_limit")[number])
    found = advised([*dead, *runs(1, outcome="crashed", death="signal"), *runs(rss_peak_bytes=MIB)])
    assert found["crashes_for_memory"].startswith("2 of the last 23 runs died for memory.")
    assert next(iter(found)) == "crashes_for_memory"


def test_this_machine_has_something() -> None:
    here = Machine.here()
    assert here.cores >= 1
    assert here.memory_bytes > 64 * MIB
