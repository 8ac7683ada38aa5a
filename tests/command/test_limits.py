"""Limits, fences and lanes on real processes: executors of `runwick-supervise` and threads of `runwick worker`."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runwick import JobState, ManagementActor
from tests.command.conftest import Place, executor_at_work, terminate, wait_for
from tests.command.reloading import drained, event_of, reload
from tests.command.test_restarts import BIN

OPS = ManagementActor("ops", "Ops", "service")

HARBOUR = """
import time
from datetime import timedelta
from pathlib import Path
from runwick import Job, JobContext, PerResource, RollingWindow, Runwick

rw = Runwick("harbour", store="sqlite:///harbour.db")
rw.pool("main", queues={"few": 1, "many": 3})
rw.queue("few", max_concurrent=50)
rw.queue("many")

@rw.job("crate.weigh", queue="few", max_executions=1,
        per_resource=(PerResource(lambda job: "scale", 1), PerResource(lambda job: f"crate {job.crate}", 1)))
class Weigh(Job):
    crate: int
    gate: str = ""

@rw.handler
def weigh(job: Weigh, ctx: JobContext) -> list:
    if job.gate:
        Path(job.gate + ".started").touch()
        while not Path(job.gate).exists():
            time.sleep(0.005)
    return [[fence.scope, fence.value] for fence in ctx.fences]

@rw.job("crate.carry", queue="few", max_executions=1, rolling_window=RollingWindow(900, timedelta(seconds=2)))
class Carry(Job):
    pass

@rw.handler
def carry(job: Carry, ctx: JobContext) -> str:
    return ctx.queue
"""


@pytest.fixture(params=["executors", "threads"])
def on(request: pytest.FixtureRequest, place: Place) -> str:
    """What runs the jobs."""
    if request.param == "threads":
        place.program = (str(BIN / "runwick"), "worker")
    kind: str = request.param
    return kind


@pytest.fixture
def harbour(application: Callable[[str, str], Any]) -> Any:
    return application("harbour", HARBOUR)


def in_use(harbour: Any, key: str = "scale") -> int:
    (scope,) = [scope for scope in harbour.rw.capacity.scopes("resource") if scope.key == key]
    held: int = scope.in_use
    return held


def weighed(harbour: Any, *receipts: Any) -> list[Any]:
    return [harbour.rw.get(receipt).result() for receipt in receipts]


def test_each_run_sees_its_fences_and_one_runs_at_a_time(on: str, place: Place, harbour: Any) -> None:
    receipts = [harbour.rw.dispatch(harbour.Weigh(number % 2)) for number in range(6)]
    assert place.run("harbour", "--until-empty")[0] == 0
    results = weighed(harbour, *receipts)
    assert [[key for key, _ in fences] for fences in results] == [["scale", f"crate {n % 2}"] for n in range(6)]
    assert sorted(fences[0][1] for fences in results) == [1, 2, 3, 4, 5, 6]
    for crate in (0, 1):
        assert sorted(fences[1][1] for fences in results[crate::2]) == [1, 2, 3]
    assert in_use(harbour) == 0


def holding(place: Place, harbour: Any, *arguments: str) -> tuple[Any, Any, Any]:
    """A supervisor whose executor holds the scale, and a job that waits for it."""
    gate = place.folder / "gate"
    held = harbour.rw.dispatch(harbour.Weigh(1, str(gate)))
    supervisor = place.command("harbour", "--executors", "1", "--log-format", "json", *arguments)
    wait_for(Path(f"{gate}.started").exists, "the run")
    waiting = harbour.rw.dispatch(harbour.Weigh(2))
    assert in_use(harbour) == 1
    return held, waiting, supervisor


def test_f046_the_slot_of_a_killed_executor_is_free_with_its_settlement(place: Place, harbour: Any) -> None:
    held, waiting, supervisor = holding(place, harbour)
    os.kill(executor_at_work(supervisor, "harbour: crate.weigh"), signal.SIGKILL)
    wait_for(lambda: harbour.rw.get(waiting).state is JobState.SUCCEEDED, "the next")
    failed = harbour.rw.get(held)
    assert (failed.state, failed.outcome) == (JobState.FAILED, "crashed")
    assert weighed(harbour, waiting) == [[["scale", 2], ["crate 2", 1]]]
    terminate(supervisor)
    supervisor.communicate(timeout=30)
    assert in_use(harbour) == 0


def test_f046_the_slot_of_a_killed_supervisor_is_free_with_the_recovery(place: Place, harbour: Any) -> None:
    held, waiting, supervisor = holding(place, harbour)
    supervisor.kill()
    supervisor.wait()
    assert in_use(harbour) == 1
    assert place.run("harbour", "--until-empty")[0] != 2
    failed = harbour.rw.get(held)
    assert (failed.state, failed.code) == (JobState.FAILED, "executions_exhausted")
    assert failed.attempts[-1].code == "worker_died"
    assert weighed(harbour, waiting) == [[["scale", 2], ["crate 2", 1]]]
    assert in_use(harbour) == 0


def test_a_resume_wakes_an_idle_worker_of_another_process(on: str, place: Place, harbour: Any) -> None:
    harbour.rw.dispatch(harbour.Carry())
    assert place.run("harbour", "--until-empty")[0] == 0
    harbour.rw.queues.pause("few", OPS, expected_revision=0)
    worker = place.command("harbour", "--log-format", "json", "--progress-interval", "100ms")
    event_of(worker, "ready")
    receipt = harbour.rw.dispatch(harbour.Carry())
    wait_for(lambda: event_of(worker, "progress")["paused"] == 1, "the line that tells of it")
    assert [reason.code for reason in harbour.rw.why(receipt).reasons] == ["queue_paused"]
    harbour.rw.queues.resume("few", OPS, expected_revision=1)
    wait_for(lambda: harbour.rw.get(receipt).state is JobState.SUCCEEDED, "its end")
    terminate(worker)
    worker.communicate(timeout=30)


def test_a_pause_stops_nothing_that_was_claimed_and_everything_behind_it(place: Place, harbour: Any) -> None:
    held, waiting, supervisor = holding(place, harbour)
    harbour.rw.queues.pause("few", OPS, expected_revision=0)
    (place.folder / "gate").touch()
    wait_for(lambda: harbour.rw.get(held).state is JobState.SUCCEEDED, "its end")
    terminate(supervisor)
    supervisor.communicate(timeout=30)
    status, out, _ = place.run("harbour", "--until-empty")
    assert (status, "1 in paused queues" in out.splitlines()[-1]) == (0, True)
    assert harbour.rw.get(waiting).state is JobState.PENDING


def test_until_empty_stays_for_what_waits_in_a_line(place: Place, harbour: Any) -> None:
    receipts = [harbour.rw.dispatch(harbour.Weigh(number)) for number in range(20)]
    assert place.run("harbour", "--until-empty", "--executors", "4")[0] == 0
    assert {harbour.rw.get(receipt).state for receipt in receipts} == {JobState.SUCCEEDED}


def test_queues_share_by_their_weights_as_their_jobs_are_claimed(on: str, place: Place, harbour: Any) -> None:
    rw = harbour.rw
    few = [rw.dispatch(harbour.Carry()) for _ in range(600)]
    many = [rw.dispatch(harbour.Carry(), queue="many") for _ in range(600)]
    assert place.run("harbour", "--until-empty")[0] == 0
    ends = sorted((rw.get(receipt).ended_at, "few" if receipt in few else "many") for receipt in (*few, *many))
    counts = Counter(queue for _, queue in ends[:600])
    assert counts["many"] == pytest.approx(450, abs=100)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (
            "max_concurrent=50",
            "max_concurrent=5",
            "queue few has capacity 50 in the store, which holds; declared is capacity 5",
        ),
        (
            ", max_concurrent=50",
            "",
            "queue few has capacity 50 in the store, which holds; declared is no limit",
        ),
        (
            "RollingWindow(900, timedelta(seconds=2))",
            "RollingWindow(7, timedelta(minutes=1))",
            "job-type crate.carry has 900 per 2 s in the store, which holds; declared is 7 per 60 s",
        ),
    ],
    ids=["capacity", "no limit any more", "rate"],
)
def test_drift_is_told_at_the_start_and_by_check_and_the_stores_value_holds(
    place: Place, harbour: Any, before: str, after: str, text: str
) -> None:
    harbour.rw.dispatch(harbour.Carry())
    assert place.run("harbour", "--until-empty")[0] == 0
    assert before in HARBOUR
    place.write(HARBOUR.replace(before, after), "harbour")
    status, out, _ = place.run("harbour", "--until-empty")
    assert (status, out.count("which holds")) == (0, 1)
    assert text in out
    place.program = (str(BIN / "runwick"),)
    status, out, _ = place.run("check", "--app", "harbour")
    assert (status, text in " ".join(out.split())) == (0, True)
    assert harbour.rw.capacity.scopes("queue")[0].capacity == 50
    assert harbour.rw.capacity.rates("job-type")[0].max_executions == 900


def test_limits_that_a_reload_brings_are_made_known(place: Place, harbour: Any) -> None:
    supervisor = place.command("harbour", "--executors", "1", "--log-format", "json")
    event_of(supervisor, "ready")
    assert [scope.key for scope in harbour.rw.capacity.scopes("queue")] == ["few"]
    place.write(HARBOUR.replace('rw.queue("many")', 'rw.queue("many", max_concurrent=7)'), "harbour")
    assert reload(supervisor)["event"] == "reloaded"
    assert {scope.key: scope.capacity for scope in harbour.rw.capacity.scopes("queue")} == {"few": 50, "many": 7}
    drained(supervisor)
