"""Who is killed as an orphan, and who is left alone."""

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Container, Iterator
from pathlib import Path

import pytest

from runwick_supervisor.processes import Ending, descendants, kill_tree, process_table
from runwick_supervisor.sweep import find_orphans, kill_child, sweep
from tests.supervisor.crew import is_gone


@pytest.fixture
def strangers() -> Iterator[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    """Two children of this process: one in its session, one in a session of its own, as an orphan would be."""
    with subprocess.Popen(["sleep", "600"]) as near, subprocess.Popen(["sleep", "600"], start_new_session=True) as far:
        try:
            yield near, far
        finally:
            near.kill()
            far.kill()


Pair = tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]


def test_only_children_of_other_sessions_that_nobody_named_are_orphans(strangers: Pair) -> None:
    near, far = strangers
    assert far.pid in find_orphans(())
    assert near.pid not in find_orphans(())
    assert far.pid not in find_orphans({far.pid})


def test_a_sweep_ends_when_no_orphan_is_left(strangers: Pair) -> None:
    near, far = strangers

    async def scene() -> None:
        await sweep((), asyncio.Lock())

    asyncio.run(scene())
    assert near.poll() is None
    assert not Path(f"/proc/{far.pid}").exists()


def test_a_child_that_is_named_while_the_sweep_waits_for_its_turn_is_spared(strangers: Pair) -> None:
    _, far = strangers

    async def scene() -> None:
        turn, spared = asyncio.Lock(), set[int]()
        await turn.acquire()
        sweeping = asyncio.create_task(sweep(spared, turn))
        while not turn._waiters:
            await asyncio.sleep(0.001)
        spared.add(far.pid)
        turn.release()
        await sweeping

    asyncio.run(scene())
    assert far.poll() is None


def test_strangers_are_never_killed() -> None:
    assert not kill_child(os.getppid())


def test_a_process_of_any_name_is_read_right(tmp_path: Path) -> None:
    odd = tmp_path / "a) S 1 (b"
    sleep = shutil.which("sleep")
    assert sleep is not None
    shutil.copy(sleep, odd)
    with subprocess.Popen([odd, "600"], start_new_session=True) as process:
        try:
            (row,) = [row for row in process_table() if row.pid == process.pid]
            assert (row.is_zombie, row.parent, row.session) == (False, os.getpid(), process.pid)
        finally:
            process.kill()


def test_an_ending_says_what_happened() -> None:
    assert str(Ending(signal=signal.SIGKILL)) == "killed by SIGKILL"
    assert str(Ending(status=3)) == "exited with status 3"
    assert str(Ending()) == "ended in an unknown way"
    assert [ending.kind for ending in (Ending(signal=9), Ending(status=0), Ending())] == ["signal", "exit", "unknown"]


_ADOPTER = """
import ctypes, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
far = "import subprocess as s; print(s.Popen(['sleep', '600'], start_new_session=True, stdout=s.DEVNULL).pid)"
near = subprocess.Popen(["sleep", "600"])
orphan = subprocess.run([sys.executable, "-c", far], stdout=subprocess.PIPE, text=True).stdout.strip()
print(near.pid, orphan, flush=True)
time.sleep(600)
"""


def test_a_tree_is_killed_with_what_left_its_sessions_and_lost_its_parents() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _ADOPTER], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as root:
        assert root.stdout is not None
        below = {int(pid) for pid in root.stdout.readline().split()}
        pidfd = os.pidfd_open(root.pid)
        try:
            assert set(descendants(root.pid)) == below
            kill_tree(root.pid, pidfd, within_s=10)
            assert root.wait() == -signal.SIGKILL
            assert all(is_gone(pid) for pid in below)
        finally:
            root.kill()
            os.close(pidfd)


def test_a_sweep_that_cannot_look_goes_on_when_it_can(strangers: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    _, far = strangers
    refusals = [OSError(errno.EMFILE, "too many"), RuntimeError("can't start new thread")]
    look = find_orphans

    def refuse_first(spared: Container[int]) -> list[int]:
        if refusals:
            raise refusals.pop()
        return look(spared)

    monkeypatch.setattr("runwick_supervisor.sweep.find_orphans", refuse_first)
    asyncio.run(sweep((), asyncio.Lock()))
    assert refusals == []
    assert not Path(f"/proc/{far.pid}").exists()


_BURIER = """
import os, subprocess
from runwick_supervisor.sweep import bury_dead
bury_dead(())  # with no child at all
stranger = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 3"], os.environ)
own = subprocess.Popen(["sh", "-c", "exit 4"])
living = subprocess.Popen(["sleep", "600"])
for dead in (stranger, own.pid):
    os.waitid(os.P_PID, dead, os.WEXITED | os.WNOWAIT)
bury_dead({own.pid})
print(os.path.exists(f"/proc/{stranger}"), own.wait(), living.poll())
living.kill()
living.wait()
"""


def test_f016_the_dead_are_buried_and_nobody_takes_the_status_of_who_is_spared() -> None:
    ended = subprocess.run([sys.executable, "-c", _BURIER], capture_output=True, text=True, check=True)
    assert ended.stdout == "False 4 None\n"
