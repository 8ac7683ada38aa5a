"""What an attempt costs, measured on this process, its children and a fork of it."""

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runwick.contracts.usage import Usage
from runwick.execution.metering import Meter, Stopwatch, unmeasured
from runwick.runtime.ambient import SystemClock
from tests.ambient import FakeClock

MB = 1_000_000


def burn(seconds: float) -> None:
    """Use this much CPU time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def resident(megabytes: int) -> bytearray:
    """Memory whose every page has been touched."""
    return bytearray(b"x") * (megabytes * MB)


def usage_of(work: Callable[[], object], meter: Meter | None = None) -> Usage:
    end = (meter or Meter(SystemClock())).start()
    work()
    usage = end()
    assert usage is not None
    return usage


def known(value: int | None) -> int:
    assert value is not None
    return value


def test_cpu_time_is_the_handlers_and_never_more_than_the_processes() -> None:
    before = time.process_time_ns()
    usage = usage_of(lambda: burn(0.05))
    spent_us = (time.process_time_ns() - before) // 1000
    assert 45_000 <= known(usage.cpu_us) <= spent_us + 1_000  # the kernel splits user and system in microseconds
    assert known(usage.wall_us) >= 45_000
    assert usage.cpu_children_us == 0


def test_the_cpu_time_of_a_child_that_was_waited_for_is_its_own_figure() -> None:
    code = "import time\nwhile time.process_time() < 0.1: pass"
    usage = usage_of(lambda: subprocess.run([sys.executable, "-c", code], check=True))
    assert known(usage.cpu_children_us) >= 90_000
    assert known(usage.cpu_us) < known(usage.cpu_children_us)


def test_a_child_of_an_earlier_attempt_costs_the_next_nothing() -> None:
    meter = Meter(SystemClock())
    usage_of(lambda: subprocess.run([sys.executable, "-c", ""], check=True), meter)
    assert usage_of(lambda: None, meter).cpu_children_us == 0


def test_the_peak_sees_memory_that_was_freed_again() -> None:
    meter = Meter(SystemClock())
    quiet = usage_of(lambda: None, meter)
    busy = usage_of(lambda: resident(50), meter)
    assert known(busy.rss_peak_bytes) - known(quiet.rss_peak_bytes) > 45 * MB
    assert known(busy.rss_peak_bytes) - known(busy.rss_end_bytes) > 45 * MB
    assert known(busy.faults_minor) > 0


def test_the_peak_of_one_attempt_is_not_the_next_ones() -> None:
    meter = Meter(SystemClock())
    busy = usage_of(lambda: resident(50), meter)
    after = usage_of(lambda: None, meter)
    assert known(busy.rss_peak_bytes) - known(after.rss_peak_bytes) > 45 * MB
    assert known(after.rss_peak_bytes) >= known(after.rss_end_bytes)


def test_memory_that_is_kept_shows_at_the_end() -> None:
    meter = Meter(SystemClock())
    quiet = usage_of(lambda: None, meter)
    kept: list[bytearray] = []
    usage = usage_of(lambda: kept.append(resident(50)), meter)
    assert known(usage.rss_end_bytes) - known(quiet.rss_end_bytes) > 45 * MB


def test_waiting_is_a_voluntary_switch() -> None:
    assert known(usage_of(lambda: time.sleep(0.001)).switches_voluntary) > 0


def test_without_proc_the_memory_is_unknown_and_the_rest_is_known(tmp_path: Path) -> None:
    usage = usage_of(lambda: burn(0.01), Meter(SystemClock(), proc=tmp_path))
    assert usage.rss_peak_bytes is None
    assert usage.rss_end_bytes is None
    assert known(usage.cpu_us) > 0


def test_a_peak_that_cannot_be_reset_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "statm").symlink_to("/proc/self/statm")
    usage = usage_of(lambda: None, Meter(SystemClock(), proc=tmp_path))
    assert usage.rss_peak_bytes is None
    assert known(usage.rss_end_bytes) > MB


def test_a_reset_that_is_refused_makes_the_peak_unknown(tmp_path: Path) -> None:
    (tmp_path / "clear_refs").symlink_to("/dev/full")
    assert usage_of(lambda: None, Meter(SystemClock(), proc=tmp_path)).rss_peak_bytes is None


@pytest.mark.parametrize("content", ["", "1", "1 many 3"])
def test_figures_that_make_no_sense_are_unknown(tmp_path: Path, content: str) -> None:
    (tmp_path / "statm").write_text(content)
    assert usage_of(lambda: None, Meter(SystemClock(), proc=tmp_path)).rss_end_bytes is None


def test_nothing_is_ever_negative() -> None:
    clock = FakeClock()
    usage = usage_of(lambda: clock.advance_ms(-5), Meter(clock))
    assert usage.wall_us == 0


def test_a_fork_measures_itself() -> None:
    """The parent's files are open when it forks; through them the child would reset and read the parent."""
    meter = Meter(SystemClock())
    parent = known(usage_of(lambda: None, meter).rss_end_bytes) // MB
    kept: list[bytearray] = []

    def child() -> Usage:
        resident(3 * parent + 200)  # a peak that only a reset of the child's own removes
        return usage_of(lambda: kept.append(resident(parent + 50)), meter)

    peak, end = in_a_fork(child)
    assert end > (parent + 50) * MB, "more than the parent ever had"
    assert peak < (3 * parent + 200) * MB


def in_a_fork(measure: Callable[[], Usage]) -> tuple[int, int]:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads that other tests may have left
        pid = os.fork()
    if pid == 0:
        usage = measure()
        os.write(writing, json.dumps([usage.rss_peak_bytes, usage.rss_end_bytes]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        peak, end = json.loads(answer.read())
    os.waitpid(pid, 0)
    return peak, end


MEASURES_TWICE = """
from runwick.execution.metering import Meter
from runwick.runtime.ambient import SystemClock
meter = Meter(SystemClock())
small = meter.start()().rss_peak_bytes
end = meter.start()
bytearray(b"x") * 200_000_000
print(small, end().rss_peak_bytes)
"""

STARTS_IT_WITH_BALLAST = """
import subprocess, sys
ballast = b"x" * 100_000_000
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
"""


def test_the_memory_of_the_program_that_started_this_one_is_not_a_peak_of_it() -> None:
    told = subprocess.run(
        [sys.executable, "-c", STARTS_IT_WITH_BALLAST, MEASURES_TWICE],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    small, large = told.stdout.split()
    assert small == "None" or int(small) < 100 * MB
    assert int(large) > 200 * MB


def test_a_stopwatch_knows_wall_time_alone() -> None:
    clock = FakeClock()
    end = Stopwatch(clock).start()
    clock.advance_ms(1_500)
    assert end() == Usage(wall_us=1_500_000)


def test_nothing_is_measured_when_recording_is_off() -> None:
    assert unmeasured()() is None


def test_what_was_used_before_is_left_when_an_attempt_begins() -> None:
    left: list[tuple[Any, Any, tuple[int, int]]] = []
    meter = Meter(SystemClock(), leave=lambda *used: left.append(used), allocations=lambda: (1_000, 10))
    burn(0.02)
    usage_of(lambda: resident(5), meter)
    usage_of(lambda: None, meter)
    (first, children, allocated), (second, *_) = left
    assert first.ru_utime + first.ru_stime >= 0.02
    assert second.ru_utime >= first.ru_utime
    assert second.ru_minflt > first.ru_minflt, "the first attempt touched new pages"
    assert children.ru_utime <= resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert allocated == (1_000, 10)


def test_allocations_are_counted_by_whoever_counts_them() -> None:
    counted = iter([(1_000, 10), (1_500, 13)])
    usage = usage_of(lambda: None, Meter(SystemClock(), allocations=lambda: next(counted)))
    assert (usage.allocated_bytes, usage.allocated_blocks, usage.allocations_by) == (500, 3, "counted")
    usage = usage_of(lambda: None)
    assert (usage.allocated_bytes, usage.allocated_blocks, usage.allocations_by) == (None, None, None)
