"""Processes that fork or start others before, after and in the middle of dispatching; each is a program of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from runwick import Runwick
from tests.dispatch.jobs import application, stored

DEADLINE_S = 60.0

DECLARED = """
import asyncio, json, multiprocessing, os, sys, threading
from datetime import timedelta
from runwick import Job, ProducerOptions, Runwick

patient = ProducerOptions(admission_wait=timedelta(seconds=60))
rw = Runwick("shop", producer=patient)  # the store is named by RUNWICK_STORE

@rw.job("reports.build", queue="reports")
class Report(Job):
    title: str
"""

FORKS = """
def in_a_child(work):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return pid

def in_a_thread():
    try:
        rw.dispatch(Report("thread"))
    except Exception as error:
        failed.append(repr(error))

failed = []
threads = [threading.Thread(target=in_a_thread) for n in range(16)]
for thread in threads:
    thread.start()
children = [in_a_child(lambda: rw.dispatch(Report("child"))) for n in range(8)]
ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
for thread in threads:
    thread.join()
print(json.dumps([ended, failed]))
"""

METHODS = """
def both_ways(title):
    blocking = rw.dispatch(Report(title))
    return [blocking.job_id, asyncio.run(rw.dispatch_async(Report(title))).job_id]

def work(prepared, answers):
    answers.put([*both_ways("child"), rw.dispatch_prepared(rw.import_prepared(prepared)).job_id])

if __name__ == "__main__":
    method, is_first = sys.argv[1:]
    context = multiprocessing.get_context(method)
    told = [] if is_first == "before" else both_ways("parent")
    prepared = rw.prepare(Report("shared"))
    answers = context.SimpleQueue()
    children = [context.Process(target=work, args=(prepared.export(), answers)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        told += answers.get()
    told += both_ways("parent") + [rw.dispatch_prepared(prepared).job_id]
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]
    print(json.dumps(told))
"""

LOOPS = """
async def dispatch():
    receipts = await asyncio.gather(*(rw.dispatch_async(Report("loop")) for _ in range(10)))
    return [receipt.job_id for receipt in receipts]

told = []
def loop():
    told.extend(asyncio.run(dispatch()))

def blocking():
    told.extend(rw.dispatch(Report("thread")).job_id for _ in range(10))

threads = [threading.Thread(target=each) for each in (loop, blocking) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(told))
"""


def told_by(program: str, folder: Path, store_url: str, *arguments: str) -> Any:
    """What a program of these lines says in the end."""
    script = folder / "program.py"
    script.write_text(DECLARED + program)
    # Python warns of every fork beside threads, and such forks are what is tried.
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script), *arguments],
        env={**os.environ, "RUNWICK_STORE": store_url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            answer, complaints = running.communicate(timeout=DEADLINE_S)
        finally:
            with suppress(ProcessLookupError):  # nothing is left of it, as it should be
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 0, complaints
    return json.loads(answer)


@pytest.fixture
def reader(store_url: str) -> Iterator[Runwick]:
    """Looks at the store when the program has ended."""
    app = application(store_url)
    yield app
    app.close()


@pytest.mark.parametrize("attempt", range(2))
def test_children_forked_during_the_first_dispatches_dispatch_too(
    tmp_path: Path, store_url: str, reader: Runwick, attempt: int
) -> None:
    assert told_by(FORKS, tmp_path, store_url) == [[0] * 8, []]
    assert stored(reader) == 24


@pytest.mark.parametrize(
    ("method", "first"), [("fork", "before"), ("fork", "after"), ("spawn", "after"), ("forkserver", "after")]
)
def test_processes_started_before_and_after_the_first_dispatch(
    tmp_path: Path, store_url: str, reader: Runwick, method: str, first: str
) -> None:
    told = told_by(METHODS, tmp_path, store_url, method, first)
    jobs = (2 if first == "after" else 0) + 3 * 2 + 2 + 1
    assert len(set(told)) == jobs == stored(reader)
    assert [reader.get(job_id).job_id for job_id in told] == told


def test_threads_and_event_loops_beside_each_other(tmp_path: Path, store_url: str, reader: Runwick) -> None:
    told = told_by(LOOPS, tmp_path, store_url)
    assert len(set(told)) == 80 == stored(reader)
