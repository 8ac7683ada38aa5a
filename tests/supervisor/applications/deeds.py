"""An application whose handlers do to their executor what a test asks for."""

import asyncio
import atexit
import gc
import logging
import os
import random
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from runwick import Job, JobContext, Runwick
from runwick.runtime import place
from tests.supervisor import strikes

rw = Runwick("deeds", store="sqlite:///never-opened.db")

if exit_file := os.environ.get("DEEDS_EXIT_FILE"):
    atexit.register(Path(exit_file).write_text, "an exit handler of the zygote ran")

if strikes_folder := os.environ.get("DEEDS_STRIKES"):
    strikes.obey_as_executor(Path(strikes_folder))


@rw.job("deeds.nothing")
class Nothing(Job):
    pass


@rw.handler
def do_nothing(job: Nothing) -> None: ...


@rw.job("deeds.echo")
class Echo(Job):
    text: str


@rw.handler
def echo(job: Echo) -> str:
    return job.text


@rw.job("deeds.echo_all")
class EchoAll(Job):
    texts: tuple[str, ...]


@rw.handler
def echo_all(job: EchoAll) -> tuple[str, ...]:
    return job.texts


@rw.job("deeds.refuse")
class Refuse(Job):
    reason: str


@rw.handler
def refuse(job: Refuse) -> None:
    raise ValueError(job.reason)


@rw.job("deeds.facts")
class Facts(Job):
    pass


@rw.handler
async def facts(job: Facts, ctx: JobContext) -> dict[str, float]:
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "session": os.getsid(0),
        "execution": ctx.execution_number,
        "chance": random.random(),
        "in_executor": place.in_executor(),
    }


@rw.job("deeds.hold")
class Hold(Job):
    """Says that it runs, and runs until the other file exists; does neither where there is no name."""

    started: str = ""
    until: str = ""


@rw.handler
def hold(job: Hold) -> None:
    if job.started:
        _say(job.started, str(os.getpid()))
    while job.until and not Path(job.until).exists():
        time.sleep(0.002)


@rw.job("deeds.end")
class End(Job):
    """Ends its executor: with a signal when `signal` is not 0, otherwise with the status."""

    signal: int = 0
    status: int = 0


@rw.handler
def end(job: End) -> None:
    if job.signal:
        os.kill(os.getpid(), job.signal)
        time.sleep(60)
    os._exit(job.status)


@rw.job("deeds.recurse")
class Recurse(Job):
    pass


@rw.handler
def recurse(job: Recurse) -> None:
    recurse(job)


@rw.job("deeds.beget")
class Beget(Job):
    """Starts a child in its own group and, if wanted, one that leaves the group and whose parent ends; then holds."""

    started: str
    until: str
    far: bool = False


_LEAVES = "import subprocess as s; print(s.Popen(['sleep', '600'], start_new_session=True, stdout=s.DEVNULL).pid)"


@rw.handler
def beget(job: Beget) -> None:
    pids = [os.getpid(), subprocess.Popen(["sleep", "600"]).pid]
    if job.far:
        leaving = subprocess.run([sys.executable, "-c", _LEAVES], stdout=subprocess.PIPE, text=True, check=True)
        pids.append(int(leaving.stdout))
    _say(job.started, " ".join(map(str, pids)))
    hold(Hold(until=job.until))


@rw.job("deeds.fork")
class Fork(Job):
    """Forks, and returns from both processes."""


@rw.handler
def fork(job: Fork) -> int:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return child


@rw.job("deeds.close")
class Close(Job):
    """Closes every descriptor but the standard ones, and may open something else under their numbers."""

    reopens: str = ""


@rw.handler
def close(job: Close) -> None:
    os.closerange(3, 256)
    if job.reopens:
        for _ in range(64):
            os.open(job.reopens, os.O_RDWR)


@rw.job("deeds.endure")
class Endure(Job):
    """Goes on until it is stopped, in one of the ways that handlers wait; writes into its files what it came to see."""

    how: str
    started: str
    seen: str = ""


@rw.handler
def endure(job: Endure) -> str:
    _say(job.started, str(os.getpid()))
    try:
        if job.how == "in C":
            sum(range(10**12))
        while True:
            time.sleep(0.002 if job.how == "python" else 60)
    except BaseException as error:
        _say(job.seen, repr(error))
        raise


@rw.job("deeds.heed")
class Heed(Job):
    """Looks at its token, and returns which causes it saw."""

    started: str


@rw.handler
def heed(job: Heed, ctx: JobContext) -> str:
    _say(job.started, str(os.getpid()))
    ctx.cancellation.wait()
    return str(ctx.cancellation.causes.name)


@rw.job("deeds.doze")
class Doze(Job):
    """Sleeps on the event loop until it is cancelled."""

    started: str


@rw.handler
async def doze(job: Doze) -> None:
    _say(job.started, str(os.getpid()))
    await asyncio.Event().wait()


@rw.job("deeds.chat")
class Chat(Job):
    """Logs so many lines, then waits for the file or ends its executor."""

    lines: int
    started: str
    until: str = ""


_log = logging.getLogger("deeds")


@rw.handler
def chat(job: Chat) -> None:
    for number in range(job.lines):
        _log.warning("line %d", number)
    hold(Hold(job.started, job.until))


@rw.job("deeds.allocate")
class Allocate(Job):
    megabytes: int


@rw.handler
def allocate(job: Allocate) -> None:
    for _ in range(job.megabytes):
        bytes(1_000_000)


@rw.job("deeds.spend")
class Spend(Job):
    """Uses this much of everything, and keeps none of it."""

    cpu_ms: int
    megabytes: int
    child_ms: int


@rw.handler
def spend(job: Spend) -> None:
    _burn(job.cpu_ms)
    bytearray(b"x") * (job.megabytes * 1_000_000)
    time.sleep(0.001)
    child = os.fork()
    if child == 0:
        _burn(job.child_ms)
        os._exit(0)
    os.waitpid(child, 0)


def _burn(cpu_ms: int) -> None:
    until_s = time.process_time() + cpu_ms / 1000
    while time.process_time() < until_s:
        pass


@rw.job("deeds.fork_warily")
class ForkWarily(Job):
    """Forks a few times; returns every warning that the interpreter had for that."""


@rw.handler
def fork_warily(job: ForkWarily) -> list[str]:
    # The interpreter miscounts the threads of a process whose name holds a space.
    Path("/proc/self/comm").write_text("forker")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(5):
            child = os.fork()
            if not child:
                os._exit(0)
            os.waitpid(child, 0)
    return [str(each.message) for each in caught]


@rw.job("deeds.fork_in_threads")
class ForkInThreads(Job):
    """Forks in several threads at once, so many times in each."""

    threads: int
    times: int


@rw.handler
def fork_in_threads(job: ForkInThreads) -> None:
    def fork_often() -> None:
        for _ in range(job.times):
            child = os.fork()
            if not child:
                os._exit(0)
            os.waitpid(child, 0)

    forking = [threading.Thread(target=fork_often) for _ in range(job.threads)]
    for thread in forking:
        thread.start()
    for thread in forking:
        thread.join()


@rw.job("deeds.fork_beside")
class ForkBeside(Job):
    """Forks in a thread while the main thread waits in C, and goes on waiting."""

    started: str


@rw.handler
def fork_beside(job: ForkBeside) -> None:
    def fork_and_say() -> None:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        _say(job.started, str(os.getpid()))

    threading.Thread(target=fork_and_say).start()
    threading.Event().wait()


class Diary:
    """Says when it is closed."""

    def __init__(self, path: str) -> None:
        self.path = path


@rw.provider(scope="process")
def diary() -> Iterator[Diary]:
    diary = Diary("")
    yield diary
    if diary.path:
        _say(diary.path, "closed")


@rw.job("deeds.note")
class Note(Job):
    path: str


@rw.handler
def note(job: Note, diary: Diary) -> None:
    diary.path = job.path


@rw.job("deeds.scribble")
class Scribble(Job):
    """Writes into the hand-off what only a fault could write there."""

    what: str


@rw.handler
def scribble(job: Scribble) -> None:
    (end,) = [thing for thing in gc.get_objects() if type(thing).__name__ == "ExecutorEnd"]
    if job.what == "counts":
        end._completions.ring(77)
    elif job.what == "records":
        end.memory.view[end._writer._ring.first_slot * 8 :] = b"\xff" * (
            len(end.memory.view) - end._writer._ring.first_slot * 8
        )
        end._completions.ring()
    time.sleep(60)


def _say(path: str, text: str) -> None:
    """Make the file in one step: whoever sees it sees the text."""
    unfinished = Path(f"{path}.unfinished")
    unfinished.write_text(text)
    unfinished.rename(path)
