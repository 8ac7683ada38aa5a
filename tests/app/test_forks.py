"""A process that forks while its threads use the application for the first time."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, threading
from runwick import Job, Runwick

rw = Runwick("forks", store="sqlite:///forks.db")

@rw.job("forks.note")
class Note(Job):
    number: int

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

os.waitpid(in_a_child(rw.migrate), 0)
threads = [threading.Thread(target=lambda n=n: rw.dispatch(Note(n))) for n in range(16)]
for thread in threads:
    thread.start()
children = [in_a_child(lambda n=n: rw.dispatch(Note(100 + n))) for n in range(8)]
print(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
for thread in threads:
    thread.join()
"""


def test_children_forked_during_the_first_dispatches_dispatch_too(tmp_path: Path) -> None:
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM],
            cwd=folder,
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (ran.returncode, ran.stdout.strip()) == (0, "0"), ran.stderr
