"""A worker and the process around it: forks of the application, and an end that no handler can keep it from."""

import os
import subprocess
import sys
from pathlib import Path

PREAMBLE = """
import asyncio, datetime, os, sys, threading
from runwick import Job, Runwick, WorkerOptions

ms = datetime.timedelta(milliseconds=1)
rw = Runwick("shop", store="sqlite:///shop.db", worker=WorkerOptions(
    shutdown_drain=20 * ms, shutdown_cancellation=20 * ms, shutdown_finalization=20 * ms, shutdown_budget=60 * ms))

class Gate:
    pass

@rw.job("shop.note")
class Note(Job):
    how: str = "quickly"

@rw.provider
async def gate() -> Gate:
    return Gate()

begun, never = threading.Event(), threading.Event()

@rw.handler
def note(job: Note, gate: Gate) -> int:
    if job.how == "for ever":
        begun.set()
        never.wait()
    return os.getpid()

@rw.job("shop.sleep")
class Sleep(Job):
    pass

@rw.handler
async def sleep(job: Sleep) -> None:
    while True:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

async def ended(receipt):
    return await rw.wait_async(receipt, timeout=datetime.timedelta(seconds=20))

rw.migrate()
"""

FORKS = """
async def main():
    async with rw.worker() as worker:
        assert (await ended(await rw.dispatch_async(Note()))).result() == os.getpid()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                assert (worker.running, worker.failure, rw.at_work) == (0, None, {})
                await worker.__aexit__(None, None, None)
                assert await worker.wait() is None
                receipt = rw.dispatch(Note())  # a producer like any other
                rw.get(receipt)
                status = 0
            finally:
                sys.stderr.flush()
                os._exit(status)
        while (found := os.waitpid(child, os.WNOHANG)) == (0, 0):
            await asyncio.sleep(0.001)
        assert os.waitstatus_to_exitcode(found[1]) == 0
        assert (await ended(await rw.dispatch_async(Note()))).result() == os.getpid()
        while worker.tally.succeeded < 3:
            await asyncio.sleep(0.001)
    print("done")

asyncio.run(main())
"""

ENTERED_IN_A_CHILD = """
worker = rw.worker()  # made before the fork, as in an application that is loaded before its server forks

async def main():
    async with worker:
        print((await ended(await rw.dispatch_async(Note()))).result() == os.getpid(), worker.failure)
    for thread in threading.enumerate():
        if thread.name.startswith("runwick-engine"):
            thread.join(20)
            assert not thread.is_alive(), "it was not left"
    sys.stdout.flush()

if (child := os.fork()) == 0:
    asyncio.run(main())
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""

FORKS_WHILE_WORKING = """
import multiprocessing

def in_the_child(queue):
    queue.put(rw.dispatch(Note()).job_id)

async def main():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    async with rw.worker():
        for _ in range(5):
            receipts = [await rw.dispatch_async(Note()) for _ in range(5)]
            process = context.Process(target=in_the_child, args=(queue,))
            process.start()
            assert (await ended(await asyncio.to_thread(queue.get, timeout=20))).state == "succeeded"
            await asyncio.to_thread(process.join)
            assert process.exitcode == 0, process.exitcode
            for receipt in receipts:
                assert (await ended(receipt)).result() == os.getpid()
    queue.close()
    print("done")

asyncio.run(main())
"""

HUNG = """
async def main():
    await rw.dispatch_async({record})
    async with rw.worker() as worker:
        await asyncio.to_thread(begun.wait)
    print(worker.running, "left behind")
    sys.stdout.flush()
    {end}

asyncio.run(main())
"""


def run(program: str, folder: Path, *flags: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a program in a folder of its own."""
    ran = subprocess.run(
        [sys.executable, *flags, "-c", PREAMBLE + program],
        cwd=folder,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ran.returncode, ran.stdout, ran.stderr


# Python warns of every fork beside threads; that is the application's decision here.
QUIET = ("-W", "error", "-W", "ignore:This process:DeprecationWarning")


def test_a_child_of_the_application_has_no_worker_and_says_nothing(tmp_path: Path) -> None:
    assert run(FORKS, tmp_path, *QUIET) == (0, "done\n", "")


def test_one_that_was_made_before_a_fork_works_in_the_child(tmp_path: Path) -> None:
    assert run(ENTERED_IN_A_CHILD, tmp_path, *QUIET) == (0, "True None\n", "")


def test_processes_forked_while_it_works_change_nothing(tmp_path: Path) -> None:
    assert run(FORKS_WHILE_WORKING, tmp_path, *QUIET) == (0, "done\n", "")


def test_a_plain_handler_that_never_ends_does_not_keep_the_process(tmp_path: Path) -> None:
    status, out, err = run(HUNG.format(record='Note("for ever")', end=""), tmp_path)
    assert (status, out) == (0, "1 left behind\n"), err


def test_leaving_waits_no_longer_than_its_budget_for_an_async_handler_that_swallows_everything(tmp_path: Path) -> None:
    # asyncio.run itself waits for such a task, so an application that must end leaves by itself.
    status, out, err = run(HUNG.format(record="Sleep()", end="os._exit(0)"), tmp_path)
    assert (status, out) == (0, "1 left behind\n"), err
