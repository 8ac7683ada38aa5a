"""One recommendation for all types of an application."""

from typing import Any

from runwick.contracts.listing import RunRecord
from runwick.management.bodies import LimitingBody
from runwick.management.desk.machine import Machine
from runwick.management.desk.sizing import RUNS_MIN
from runwick.management.desk.tuning import TuningBody, TypeRuns, tuning_of
from tests.management.runs import MIB, a_run

QUIET = LimitingBody(factor="no_jobs", text="", facts=())


def runs(count: int = RUNS_MIN, **cost: Any) -> list[RunRecord]:
    usual = {"wall_us": 10_000, "cpu_system_us": 0, "rss_peak_bytes": 60 * MIB, "rss_end_bytes": 30 * MIB}
    return [a_run(number, **{**usual, **cost}) for number in range(count)]


def tuned(memory_mib: int = 8192, **types: list[RunRecord]) -> TuningBody:
    mix = [run for last in types.values() for run in last]
    known = {name: TypeRuns(last, 60_000) for name, last in types.items()}
    return tuning_of(known, mix, Machine(cores=4, memory_bytes=memory_mib * MIB), QUIET)


def test_too_few_runs_recommend_nothing() -> None:
    found = tuned(few=runs(RUNS_MIN - 1, cpu_user_us=9_000), none=[])
    assert [(each.name, each.runs, each.is_enough) for each in found.types] == [("few", 19, False), ("none", 0, False)]
    assert (found.advice, found.settings) == ((), {})


def test_a_type_counts_by_the_time_that_it_keeps_executors() -> None:
    computing = runs(cpu_user_us=10_000)
    waiting = runs(wall_us=30_000, cpu_user_us=0)
    assert tuned(computing=computing).settings["executors_per_core"] == "1"
    assert tuned(computing=computing, waiting=waiting).settings["executors_per_core"] == "4"
    assert "they computed for 25 % of their time, so 16 keep the cores busy." in (
        tuned(computing=computing, waiting=waiting).advice[0].text
    )


def test_the_largest_type_says_how_many_fit_and_how_far_executors_may_grow() -> None:
    small, large = runs(cpu_user_us=1_000), runs(cpu_user_us=1_000, rss_peak_bytes=1_030 * MIB)
    found = tuned(small=small, large=large)
    assert found.settings == {"executors_per_core": "1.25", "memory_hard": "2000MiB"}
    assert "but only 5 of 1.3 GiB fit into 80 % of its memory" in found.advice[0].text
    assert [one.code for one in found.advice] == ["executors_per_core", "memory_hard", "no_recycling"]
    assert found.advice[1].text.startswith("An executor that grew by more is killed. large takes most")


def test_what_keeps_memory_has_executors_replaced_below_the_hard_limit() -> None:
    keeping = [*runs(cpu_user_us=1_000, rss_peak_bytes=130 * MIB, rss_end_bytes=130 * MIB), *runs(1, cpu_user_us=1_000)]
    found = tuned(keeping=keeping, other=runs(cpu_user_us=1_000))
    assert (found.settings["memory_soft"], found.settings["memory_hard"]) == ("208MiB", "416MiB")
    assert found.advice[-1].text.endswith("since keeping does not give back what it took.")


def test_runs_on_several_cores_want_one_thread() -> None:
    assert tuned(wide=runs(cpu_user_us=40_000)).settings["numeric_threads"] == "1"
    assert "numeric_threads" not in tuned(narrow=runs(cpu_user_us=10_000)).settings
