"""``runwick worker`` as a process: what it runs, says and leaves, and how it stops."""

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.command.conftest import APPLICATION, Place, line_of, summary_of, terminate, wait_for

BIN = Path(sys.executable).parent

WITH_ASYNC = (
    APPLICATION
    + """
import asyncio
import signal

@rw.job("errands.walk", queue="walks", retry_delay=(datetime.timedelta(milliseconds=1),) * 2)
class Walk(Job):
    gate: str = ""

@rw.handler
async def walk(job: Walk) -> None:
    if job.gate.endswith("deaf blocked"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    Path(job.gate + ".started").touch()
    if job.gate.endswith("blocked"):
        time.sleep(60)
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not job.gate.endswith("stubborn"):
                raise
"""
)

SHORT = {
    "RUNWICK_SHUTDOWN_DRAIN": "50ms",
    "RUNWICK_SHUTDOWN_CANCELLATION": "50ms",
    "RUNWICK_SHUTDOWN_FINALIZATION": "50ms",
}


@pytest.fixture(autouse=True)
def runwick_worker(place: Place) -> None:
    place.program = (str(BIN / "runwick"), "worker")


def test_until_empty_runs_what_is_there_and_says_what_is_left(place: Place, errands: Any) -> None:
    receipts = [errands.rw.dispatch(errands.Run(what)) for what in ("letter", "stumble")]
    errands.rw.dispatch(errands.Other())
    status, out, err = place.run("errands", "--until-empty", "--queues", "errands", "--log-format", "json")
    assert (status, err) == (0, "")
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["event"] for event in events] == ["opened", "ready", "attempt_ended", "summary"]
    assert (events[0]["slots"], events[0]["pools"], events[1]["slots"]) == (4, {"main": 4}, 4)
    summary = summary_of(out)
    assert (summary["succeeded"], summary["retried"], summary["failed"]) == (2, 1, 0)
    assert "share_in_handlers" not in summary
    assert [errands.rw.get(receipt).result(str) for receipt in receipts] == ["letter", "stumble"]
    (usage,) = [attempt.usage for attempt in errands.rw.get(receipts[0]).attempts]
    assert usage.wall_us >= 0
    assert usage.cpu_us is None


def test_a_job_that_ends_failed_is_told_by_the_exit_status(place: Place, errands: Any) -> None:
    errands.rw.dispatch(errands.Run("fail"))
    status, out, _ = place.run("errands:rw", "--until-empty")
    assert status == 1
    assert "failed_permanently (no_such_errand), now failed" in out
    assert "stopped: 0 succeeded · 1 failed" in out


def test_check_starts_nothing(place: Place, errands: Any) -> None:
    receipt = errands.rw.dispatch(errands.Run())
    status, out, _ = place.run("errands", "--check")
    assert status == 0
    assert out.startswith("runwick worker ")
    assert "· 4 slots\n" in out
    assert out.endswith("nothing is wrong, and nothing was started\n")
    assert errands.rw.get(receipt).state == "pending"


def test_everything_that_is_wrong_is_said_at_once_and_nothing_is_written(place: Place) -> None:
    place.write(APPLICATION)
    status, out, err = place.run("errands", "--queues", "erands", RUNWICK_LEASE_DURATION="30s")
    assert (status, out) == (2, "")
    assert err.startswith("Runwick cannot start: 3 problems.\n")
    for piece in ("invalid_timing", "invalid_pool", "erands", "store_not_installed"):
        assert piece in err
    assert not (place.folder / "errands.db").exists()


def test_slots_must_fit_into_what_may_be_outstanding(place: Place, errands: Any) -> None:
    status, _, err = place.run("errands", RUNWICK_MAX_OUTSTANDING_ATTEMPTS="3")
    assert (status, "pool_budget_exceeded" in err) == (2, True)


def test_an_application_that_cannot_be_found_is_one_problem(place: Place) -> None:
    status, _, err = place.run("errands")
    assert (status, "invalid_application" in err) == (2, True)


def test_term_drains_and_gives_back_what_has_not_begun(place: Place, errands: Any) -> None:
    gate = place.folder / "gate"
    held = errands.rw.dispatch(errands.Run("hold", str(gate)))
    worker = place.command("errands")
    wait_for((place.folder / "gate.started").exists, "the handler to begin")
    assert "runwick worker errands" in psutil.Process(worker.pid).cmdline()[0]
    terminate(worker)
    wait_for(lambda: "stopping: 1 running" in line_of(worker), "the drain")
    waiting = errands.rw.dispatch(errands.Run("later"))
    gate.touch()
    assert worker.wait(30) == 0
    assert (errands.rw.get(held).state, errands.rw.get(waiting).state) == ("succeeded", "pending")


@pytest.fixture
def walks(place: Place, errands: Any) -> Callable[..., Any]:
    """Dispatches a walk, which never ends by itself, and starts a worker on it; answers the receipt and the worker."""
    place.write(WITH_ASYNC)

    def begin(gate: str, **environment: str) -> Any:
        from runwick import Job

        @errands.rw.job("errands.walk", queue="walks")
        class Walk(Job):
            gate: str = ""

        receipt = errands.rw.dispatch(Walk(str(place.folder / gate)))
        worker = place.command("errands", **environment)
        wait_for((place.folder / f"{gate}.started").exists, "the handler to begin")
        return receipt, worker

    return begin


def test_a_second_signal_asks_runs_to_stop_and_the_job_need_not_wait(errands: Any, walks: Callable[..., Any]) -> None:
    # Otherwise it would wait for longer than this test does.
    receipt, worker = walks("gate", RUNWICK_SHUTDOWN_DRAIN="2min", RUNWICK_SHUTDOWN_BUDGET="3min")
    terminate(worker, signal.SIGINT)
    wait_for(lambda: "stopping: 1 running" in line_of(worker), "the drain")
    terminate(worker, signal.SIGINT)
    assert worker.wait(30) == 0
    view = errands.rw.get(receipt)
    assert (view.state, [attempt.outcome for attempt in view.attempts]) == ("retrying", ["interrupted"])


def test_a_third_signal_leaves_what_does_not_end(place: Place, errands: Any) -> None:
    held = errands.rw.dispatch(errands.Run("hold", str(place.folder / "gate")))
    patience = dict.fromkeys(("SHUTDOWN_DRAIN", "SHUTDOWN_CANCELLATION", "CANCELLATION_GRACE"), "2min")
    options = {f"RUNWICK_{name}": value for name, value in patience.items()}
    worker = place.command("errands", **options, RUNWICK_SHUTDOWN_BUDGET="5min")
    wait_for((place.folder / "gate.started").exists, "the handler to begin")

    def left() -> bool:
        if worker.poll() is None:
            terminate(worker, signal.SIGINT)
        return worker.poll() is not None

    wait_for(left, "the end")
    out, err = worker.communicate(timeout=30)
    assert (worker.returncode, err) == (0, "")
    assert "stopped: 0 succeeded" in out
    assert errands.rw.get(held).state == "running", "its lease will run out"


def test_a_plain_handler_that_never_ends_does_not_keep_the_process(place: Place, errands: Any) -> None:
    held = errands.rw.dispatch(errands.Run("hold", str(place.folder / "gate")))
    worker = place.command("errands", **SHORT, RUNWICK_SHUTDOWN_BUDGET="20s")
    wait_for((place.folder / "gate.started").exists, "the handler to begin")
    terminate(worker)
    out, err = worker.communicate(timeout=30)
    assert (worker.returncode, err) == (0, "")
    assert "stopped: 0 succeeded" in out
    assert errands.rw.get(held).state == "running", "its lease will run out"


def test_an_async_handler_that_swallows_every_cancellation_does_not_keep_the_process(
    errands: Any, walks: Callable[..., Any]
) -> None:
    receipt, worker = walks("stubborn", **SHORT, RUNWICK_SHUTDOWN_BUDGET="2min")
    terminate(worker)
    assert worker.wait(30) == 0
    assert errands.rw.get(receipt).state == "running", "its lease will run out"


@pytest.mark.parametrize("gate", ["blocked", "deaf blocked"])
def test_an_async_handler_that_blocks_the_loop_keeps_nobody_from_stopping(
    errands: Any, walks: Callable[..., Any], gate: str
) -> None:
    """Also where the signal does not wake the main thread: it goes to another one, or came just before the sleep."""
    receipt, worker = walks(gate, **SHORT, RUNWICK_SHUTDOWN_BUDGET="200ms")
    terminate(worker)
    assert worker.wait(30) == 1, "it is ended, for its main thread does not come back"
    assert errands.rw.get(receipt).state == "running", "its lease will run out"
