"""A process that is its grandparent's child from the start, forked with and without the compiled part."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from runwick_supervisor import forking, native

PATIENCE_S = 60

START = """
import os, sys, threading
from runwick_supervisor import native, processes
from runwick_supervisor.forking import fork_away

processes.adopt_orphans()
library = native.load()[0] if sys.argv[1] == "compiled" else None
heard = []
os.register_at_fork(
    before=lambda: heard.append("before"),
    after_in_parent=lambda: heard.append("parent"),
    after_in_child=lambda: heard.append("child"),
)
own = os.getpid()
reading, writing = os.pipe()
"""


@pytest.fixture(params=["compiled", "python"])
def way(request: pytest.FixtureRequest) -> str:
    if request.param == "compiled":
        assert native.load()[0] is not None, "the compiled part is built where the tests run"
    way: str = request.param
    return way


def ran(way: str, scene: str) -> str:
    """What the scene prints, in an interpreter of its own."""
    program = textwrap.dedent(START) + textwrap.dedent(scene)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, way], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def descriptors() -> int:
    """How many are open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_kernel_goes_on_telling_it_on_which_core_it_runs(way: str) -> None:
    scene = """
        import ctypes
        libc = ctypes.CDLL(None)
        born = fork_away(library)
        if born.pid == 0:
            for core in sorted(os.sched_getaffinity(0)):
                os.sched_setaffinity(0, {core})
                os.write(writing, b"." if libc.sched_getcpu() == core else b"x")
            os._exit(0)
        os.waitpid(born.pid, 0)
        print(set(os.read(reading, 1000)) == set(b"."))
    """
    assert ran(way, scene) == "True\n"


def test_it_is_the_child_of_who_adopts_orphans_and_the_process_between_is_gone(way: str) -> None:
    scene = """
        for _ in range(20):
            born = fork_away(library)
            if born.pid == 0:
                while os.getppid() == born.middle:
                    pass
                os.write(writing, f"{os.getppid()} {born.middle} {os.getpid()}".encode())
                os._exit(7)
            parent, middle, pid = map(int, os.read(reading, 100).split())
            assert (parent, middle, pid) == (own, born.middle, born.pid)
            assert not os.path.exists(f"/proc/{born.middle}")
            assert os.waitstatus_to_exitcode(os.waitpid(born.pid, 0)[1]) == 7
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            print(len(os.listdir("/proc/self/fd")))
    """
    assert ran(way, scene) == "6\n", "nothing is left, no process and no descriptor"


def test_memory_is_its_own_and_the_interpreter_is_whole(way: str) -> None:
    scene = """
        import subprocess
        kept = ["zygote"]
        born = fork_away(library)
        if born.pid == 0:
            kept[0] = "executor"
            said = ["echo", "started"]
            thread = threading.Thread(target=lambda: kept.append(subprocess.check_output(said)))
            thread.start()
            thread.join()
            os.write(writing, f"{kept} {threading.get_native_id() == os.getpid()} {heard[-1]}".encode())
            os._exit(0)
        os.waitpid(born.pid, 0)
        print(os.read(reading, 200).decode(), kept, heard[0], heard[-1])
    """
    assert ran(way, scene) == "['executor', b'started\\n'] True child ['zygote'] before parent\n"


def test_threads_that_the_zygote_has_do_not_hold_it_up(way: str) -> None:
    scene = """
        ended = threading.Event()
        threading.Thread(target=ended.wait, daemon=True).start()
        born = fork_away(library)
        if born.pid == 0:
            os.write(writing, str(threading.active_count()).encode())
            os._exit(0)
        os.waitpid(born.pid, 0)
        print(os.read(reading, 10).decode(), threading.active_count())
        ended.set()
    """
    assert ran(way, scene) == "1 2\n"


def test_an_application_that_waits_for_every_child_takes_nothing_away(way: str) -> None:
    scene = """
        import signal
        def reap(*_):
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pass
        signal.signal(signal.SIGCHLD, reap)
        born = fork_away(library)
        if born.pid == 0:
            os.read(reading, 1)
            os._exit(0)
        print(os.path.exists(f"/proc/{born.pid}"))
        os.write(writing, b"x")
    """
    assert ran(way, scene) == "True\n"


def test_without_room_for_processes_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    open_before = descriptors()
    monkeypatch.setattr(forking, "_fork", refuse)
    with pytest.raises(OSError, match="Resource temporarily unavailable"):
        forking.fork_away(None)
    assert descriptors() == open_before


def test_without_room_for_the_second_process_it_says_so() -> None:
    scene = """
        from runwick_supervisor import forking
        fork = forking._fork
        def first_only():
            if os.getpid() != own:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return fork()
        forking._fork = first_only
        try:
            fork_away(None)
        except OSError as error:
            print(error.errno, own == os.getpid())
    """
    assert ran("python", scene) == "11 True\n"
