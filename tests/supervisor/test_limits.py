"""Memory limits: a run that takes too much is stopped, an executor that has grown is replaced when it is free."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runwick.config.options import ExecutorOptions
from runwick.contracts.outcomes import Death, OutcomeKind
from runwick_supervisor import rounds
from runwick_supervisor.events import EventKind
from runwick_supervisor.sampling import Probe
from tests.supervisor.applications.trials import Echo, Grow, rw
from tests.supervisor.crew import crew, until

TRIALS = "tests.supervisor.applications.trials"
MIB = 2**20


@pytest.mark.usefixtures("stack_is_waited_for")
def test_a_run_beyond_the_hard_limit_is_stopped_as_a_crash_and_what_it_used_is_known(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2, TRIALS, application=rw, options=ExecutorOptions(memory_hard=64 * MIB)) as its:
            (outcome,) = await its.run(Grow(128, str(tmp_path / "never")))
            assert (outcome.kind, outcome.code) == (OutcomeKind.CRASHED, "memory_limit_exceeded")
            assert outcome.death == Death("memory_limit", signal.SIGKILL, None, "handle")
            assert outcome.error is not None
            assert outcome.error.message == "its executor grew beyond its memory limit: killed by SIGKILL"
            assert outcome.usage is not None
            assert outcome.usage.rss_peak_bytes is not None
            assert outcome.usage.rss_peak_bytes > 64 * MIB
            assert outcome.black_box is not None
            assert "in grow" in outcome.black_box.stack
            assert [event.text for event in its.heard(EventKind.EXECUTOR_STOPPED)] != []
            assert await its.result(Echo("next")) == "next"

    asyncio.run(scene())


def test_a_run_within_the_hard_limit_is_left_alone() -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=rw, options=ExecutorOptions(memory_hard=256 * MIB)) as its:
            pid = its.executors[0].pid
            assert await its.result(Grow(32)) == pid
            assert its.executors[0].pid == pid

    asyncio.run(scene())


def test_an_executor_beyond_the_soft_limit_is_replaced_when_its_run_has_ended() -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=rw, options=ExecutorOptions(memory_soft=32 * MIB)) as its:
            pid = its.executors[0].pid
            assert await its.result(Grow(64, keeps=True)) == pid
            await until(lambda: its.heard(EventKind.EXECUTOR_RECYCLED), "another one in its place")
            (event,) = its.heard(EventKind.EXECUTOR_RECYCLED)
            assert event.text.startswith("replaced since it grew by ")
            assert its.executors[0].pid != pid

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        (ExecutorOptions(memory_soft=8 * MIB), "memory_soft"),
        (ExecutorOptions(memory_soft=8 * MIB, memory_hard=999 * MIB), "memory_soft"),
        (ExecutorOptions(memory_hard=8 * MIB), "memory_hard"),
    ],
    ids=["soft", "both", "hard"],
)
def test_a_limit_that_leaves_no_room_for_a_second_attempt_is_told_once(
    options: ExecutorOptions, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "_MEMORY_ROUND_S", 60.0)  # so that the hard limit kills nobody

    async def scene() -> None:
        async with crew(1, TRIALS, application=rw, options=options) as its:
            for times in range(1, 4):
                await its.result(Grow(32, keeps=True))
                await until(lambda times=times: len(its.heard(EventKind.EXECUTOR_RECYCLED)) == times, "an heir")  # type: ignore[misc]
            (event,) = its.heard(EventKind.LIMIT_TOO_TIGHT)
            assert event.text.endswith(f": {limit} leaves no room for work")

    asyncio.run(scene())


def test_what_it_was_forked_with_does_not_count() -> None:
    async def scene() -> None:
        # Far less than the interpreter alone has.
        options = ExecutorOptions(memory_soft=6 * MIB, memory_hard=64 * MIB)
        async with crew(1, TRIALS, application=rw, options=options) as its:
            pid = its.executors[0].pid
            for _ in range(20):
                await its.result(Echo("small"))
            assert its.executors[0].pid == pid

    asyncio.run(scene())


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    probe = Probe(1, proc=tmp_path)
    try:
        assert probe.sample() is None
        assert probe.peak_bytes() is None
        assert probe.growth_bytes() is None
    finally:
        probe.close()


def test_figures_that_make_no_sense_are_unknown(tmp_path: Path) -> None:
    process = tmp_path / "7"
    process.mkdir()
    (process / "statm").write_text("1 99999999999999999999 1")
    (process / "stat").write_text("7 (a) b) R " + "1 " * 40)
    (process / "status").write_text("Name: x\nVmHWM: many kB\n")
    probe = Probe(7, proc=tmp_path)
    try:
        assert probe.sample() is None
        assert probe.peak_bytes() is None
        (process / "statm").write_text("1 10 1")
        sample = probe.sample()
        assert sample is not None
        assert (sample.rss_bytes, sample.cpu_us) == (40_960, 20_000)
    finally:
        probe.close()


_PARENT = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        time.sleep(float(sys.argv[2]))
        os._exit(0)
print(flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(("children", "live_s", "too_many"), [(70, 0, True), (40, 0, False), (70, 600, False)])
def test_f016_dead_children_are_counted_and_living_ones_are_not(children: int, live_s: int, too_many: bool) -> None:
    command = [sys.executable, "-c", _PARENT, str(children), str(live_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as parent:
        probe = Probe(parent.pid)
        try:
            assert parent.stdout is not None
            parent.stdout.readline()
            until_s = time.monotonic() + 20
            while too_many and not probe.leaves_too_many_dead() and time.monotonic() < until_s:
                time.sleep(0.005)  # the last ones are about to die
            assert probe.leaves_too_many_dead() is too_many
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
            parent.wait()
        assert not probe.leaves_too_many_dead()
        probe.close()
