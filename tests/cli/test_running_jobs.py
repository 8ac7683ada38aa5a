"""Commands about a job that runs at this moment: they follow it, and look into it."""

import asyncio
import contextlib
import json
import re
import threading
from collections.abc import Iterator

import pytest

from runwick import Runwick
from tests.cli import ground
from tests.cli.conftest import Place
from tests.cli.ground import LONG, Pack, asked, run


@contextlib.contextmanager
def working(rw: Runwick) -> Iterator[None]:
    """A worker beside the test, in a thread of its own."""
    is_up, is_over = threading.Event(), threading.Event()

    async def work() -> None:
        async with rw.worker():
            is_up.set()
            while not is_over.is_set():
                await asyncio.sleep(0.02)

    thread = threading.Thread(target=asyncio.run, args=(work(),))
    thread.start()
    try:
        assert is_up.wait(timeout=30)
        yield
    finally:
        ground.released.set()
        is_over.set()
        thread.join(timeout=60)
        ground.released.clear()


@pytest.fixture
def running_job(server_place: Place) -> Iterator[str]:
    """The id of a job that runs until it is released, as soon as its worker has told so."""
    with working(server_place.rw):
        job_id = server_place.rw.dispatch(Pack(LONG)).job_id
        for _ in range(600):
            if asked("jobs", "get", job_id)["result"]["begunAt"] is not None:
                break
        yield job_id


def test_the_stack_of_what_runs_is_shown_and_audited(running_job: str) -> None:
    shown = run("jobs", "stack", running_job, "--reason", "it hangs").stdout
    assert "in pack" in shown
    assert "ground.py" in shown
    rows = asked("audit", "list", "--job", running_job)["result"]["records"]
    assert {row["action"] for row in rows} == {"look", "reveal_stack"}
    assert {row["reason"] for row in rows} == {"it hangs"}
    seen = asked("workers", "list")["result"]["workers"]
    assert [each["alive"] for each in seen] == [True]
    assert re.search(r"^worker \S+  alive .*  seen \S+ (?:µs|ms|s) ago$", run("workers", "list").stdout, re.MULTILINE)
    ended = asked("workers", "list", "--include-expired")["result"]["workers"]
    assert len(ended) == 1


def test_a_job_is_followed_from_step_to_step(running_job: str) -> None:
    release = threading.Timer(1.5, ground.released.set)
    release.start()
    lines = [json.loads(each) for each in run("--agent", "jobs", "tail", running_job).stdout.splitlines()]
    release.join()
    states = [each["result"]["state"] for each in lines if each["stream"] == "item"]
    assert (states[0], states[-1]) == ("running", "succeeded")
    assert lines[-1]["stream"] == "end"
    shown = run("jobs", "tail", running_job).stdout
    assert "succeeded  generation 1  execution 1 of" in shown
