"""`runwick-supervise` with several pools: each has executors of its own."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.command.conftest import APPLICATION, Place, executor_at_work, line_of, terminate, wait_for

TWO_POOLS = APPLICATION + (
    "\nrw.pool('main', queues=('errands',), concurrency=2)\nrw.pool('others', queues=('others',), concurrency=1)\n"
)


@pytest.fixture
def two_pools(place: Place, errands: Any) -> Any:
    """The application with a pool for each of its queues."""
    place.write(TWO_POOLS)
    return errands


def opened(place: Place, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a check says of the worker."""
    status, out, err = place.run("errands", "--check", "--log-format", "json", *arguments, **environment)
    assert (status, err) == (0, "")
    first: dict[str, Any] = json.loads(out.splitlines()[0])
    return first


def test_each_pool_has_as_many_executors_as_its_concurrency(place: Place, two_pools: Any) -> None:
    said = opened(place)
    assert (said["pools"], said["executors"]) == ({"main": 2, "others": 1}, 3)
    status, out, _ = place.run("errands", "--check")
    assert (status, "→ 3 executors\npools: main 2, others 1\n" in out) == (0, True)


def test_queues_leave_the_pools_that_serve_them(place: Place, two_pools: Any) -> None:
    assert opened(place, "--queues", "others")["pools"] == {"others": 1}
    assert opened(place, "--queues", "others", "--executors", "3")["pools"] == {"others": 3}
    status, _, err = place.run("errands", "--check", "--queues", "nowhere")
    assert status == 2
    assert 'names "nowhere", which no pool serves; the pools serve: errands, others.' in err


@pytest.mark.parametrize(
    ("arguments", "environment", "named"),
    [
        (["--executors", "4"], {"RUNWICK_EXECUTORS": "5"}, "--executors"),
        (["--executors-per-core", "1"], {}, "--executors-per-core"),
        ([], {"RUNWICK_EXECUTORS": "5"}, "RUNWICK_EXECUTORS"),
    ],
)
def test_one_number_of_executors_for_several_pools_is_one_problem(
    place: Place, two_pools: Any, arguments: list[str], environment: dict[str, str], named: str
) -> None:
    status, _, err = place.run("errands", "--check", *arguments, **environment)
    assert status == 2
    assert err.startswith("Runwick cannot start: 1 problem.\n")
    assert f"{named}: says how many executors one pool has, but this worker serves 2 (main 2, others 1)" in err


def test_pools_larger_than_what_a_worker_may_run_are_refused(place: Place, two_pools: Any) -> None:
    status, _, err = place.run("errands", "--check", RUNWICK_MAX_OUTSTANDING_ATTEMPTS="2")
    assert (status, "concurrency adds up to 3 (main 2, others 1)" in err) == (2, True)


def test_a_flooded_pool_takes_no_executor_of_another(place: Place, two_pools: Any) -> None:
    gates = [place.folder / f"gate-{number}" for number in range(4)]
    held = [two_pools.rw.dispatch(two_pools.Run("hold", str(gate))) for gate in gates]
    supervisor = place.command("errands")
    wait_for(lambda: len(list(place.folder.glob("*.started"))) == 2, "the flood to fill its pool")
    others = [two_pools.rw.dispatch(two_pools.Other()) for _ in range(3)]
    wait_for(lambda: all(two_pools.rw.get(other).state == "succeeded" for other in others), "the other pool")
    assert len(list(place.folder.glob("*.started"))) == 2
    for gate in gates:
        gate.touch()
    wait_for(lambda: all(two_pools.rw.get(receipt).state == "succeeded" for receipt in held), "the flood to end")
    terminate(supervisor)
    assert supervisor.wait(30) == 0


def test_what_happens_to_an_executor_names_its_pool(place: Place, two_pools: Any) -> None:
    gate = place.folder / "gate"
    two_pools.rw.dispatch(two_pools.Run("hold", str(gate)))
    supervisor = place.command("errands", "--log-format", "json")
    wait_for(Path(f"{gate}.started").exists, "the run")
    os.kill(executor_at_work(supervisor), signal.SIGKILL)
    died: dict[str, Any] = {}
    while died.get("event") != "executor_died":
        died = json.loads(line_of(supervisor))
    assert died["pool"] == "main"
    assert ' of pool "main" died: ' in died["text"]
    gate.touch()
    terminate(supervisor)
    assert supervisor.wait(30) == 0
