"""An application whose handlers do not want to stop, grow, or leave things behind."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from runwick import Job, JobContext, Runwick

rw = Runwick("trials", store="sqlite:///never-opened.db")


def say(path: str, text: str) -> None:
    """Make the file in one step: whoever sees it sees the text."""
    unfinished = Path(f"{path}.unfinished")
    unfinished.write_text(text)
    unfinished.rename(path)


@rw.job("trials.echo")
class Echo(Job):
    text: str


@rw.handler
def echo(job: Echo) -> str:
    return job.text


@rw.job("trials.persist")
class Persist(Job):
    """Goes on for ever in one of several ways, after it has said its pid."""

    how: str
    started: str


@rw.handler(interrupt="token")
def persist(job: Persist, ctx: JobContext) -> None:
    say(job.started, str(os.getpid()))
    while True:
        match job.how:
            case "in C":
                sum(range(10**12))
            case "in a regular expression":
                re.match(r"(a*)*b", "a" * 60)
            case "asleep":
                time.sleep(600)


@rw.job("trials.withstand")
class Withstand(Job):
    """Catches everything that is raised in it, and goes on; at the third exception it ends."""

    started: str


@rw.handler
def withstand(job: Withstand) -> int:
    say(job.started, str(os.getpid()))
    for caught in range(3):
        try:
            time.sleep(600)
        except BaseException:
            say(f"{job.started}.caught", str(caught))
    return 3


@rw.job("trials.family")
class Family(Job):
    """Starts a child in its group, one that leads a session of its own, and one that was forked twice; then sleeps."""

    started: str


_FAR = "import subprocess as s; print(s.Popen(['sleep', '600'], start_new_session=True, stdout=s.DEVNULL).pid)"


@rw.handler(interrupt="token")
def family(job: Family, ctx: JobContext) -> None:
    near = subprocess.Popen(["sleep", "600"])
    leading = subprocess.Popen(["sleep", "600"], start_new_session=True)
    far = subprocess.run([sys.executable, "-c", _FAR], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    say(job.started, f"{os.getpid()} {near.pid} {leading.pid} {far}")
    time.sleep(600)


@rw.job("trials.yield")
class Yield(Job):
    """Ends as soon as its token says so, well."""

    started: str


@rw.handler
def yielding(job: Yield, ctx: JobContext) -> str:
    say(job.started, str(os.getpid()))
    ctx.cancellation.wait()
    return str(ctx.cancellation.causes.name)


@rw.job("trials.disarm")
class Disarm(Job):
    """Gives every real-time signal its own meaning again, or executes another program; then sleeps."""

    started: str
    executes: bool = False


@rw.handler
def disarm(job: Disarm) -> None:
    if job.executes:
        say(job.started, str(os.getpid()))
        os.execv("/bin/sleep", ["sleep", "600"])
    for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
        signal.signal(number, signal.SIG_DFL)
    say(job.started, str(os.getpid()))
    time.sleep(600)


@rw.job("trials.split")
class Split(Job):
    """Forks; the child returns as if it were alone, and its parent goes on until the file exists."""

    left: str
    until: str


@rw.handler
def split(job: Split) -> None:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        say(job.left, str(os.getpid()))
        while not Path(job.until).exists():
            time.sleep(0.002)


class Stubborn:
    """Can never be closed."""


@rw.provider(scope="process")
def stubborn() -> Iterator[Stubborn]:
    yield Stubborn()
    while True:
        time.sleep(600)


@rw.job("trials.borrow")
class Borrow(Job):
    """Makes its executor one that never ends by itself."""


@rw.handler
def borrow(job: Borrow, stubborn: Stubborn) -> int:
    return os.getpid()


class Slow:
    """Takes so long to be closed."""

    seconds = 0.0
    path = ""


@rw.provider
def slow() -> Iterator[Slow]:
    slow = Slow()
    yield slow
    if slow.path:
        say(slow.path, "closing")
    time.sleep(slow.seconds)
    if slow.path:
        say(f"{slow.path}.closed", "closed")


@rw.job("trials.linger")
class Linger(Job):
    """Returns when it is asked to, or at once, and takes so long to close."""

    seconds: float
    closing: str
    waits: bool = False
    started: str = ""


@rw.handler(interrupt="token")
def linger(job: Linger, ctx: JobContext, slow: Slow) -> str:
    slow.seconds, slow.path = job.seconds, job.closing
    if job.waits:
        say(job.started, str(os.getpid()))
        ctx.cancellation.wait()
    return "done"


@rw.job("trials.grow")
class Grow(Job):
    """Takes so much memory, then holds it until the file exists, or gives it back at once when there is no name."""

    megabytes: int
    until: str = ""
    keeps: bool = False


_kept: list[bytearray] = []


@rw.handler(interrupt="token")
def grow(job: Grow, ctx: JobContext) -> int:
    taken = bytearray(job.megabytes * 2**20)
    for at in range(0, len(taken), 4096):
        taken[at] = 1
    if job.keeps:
        _kept.append(taken)
    while job.until and not Path(job.until).exists():
        time.sleep(0.002)
    return os.getpid()


@rw.job("trials.burn")
class Burn(Job):
    """Uses the processor for so long, and lets a child do so too; then ends its executor."""

    own_ms: int
    children_ms: int
    status: int = 3


@rw.handler
def burn(job: Burn) -> None:
    if job.children_ms:
        work = f"import time\nwhile time.process_time() < {job.children_ms / 1000}: pass"
        subprocess.run([sys.executable, "-c", work], check=True)
    until_s = time.process_time() + job.own_ms / 1000
    while time.process_time() < until_s:
        pass
    os._exit(job.status)


@rw.job("trials.close_all")
class CloseAll(Job):
    """Closes every descriptor but the standard ones, and may open something else under their numbers."""

    reopens: str = ""


@rw.handler
def close_all(job: CloseAll) -> None:
    numbers = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]  # noqa: PTH208
    for number in numbers:
        try:
            os.close(number)
        except OSError:
            continue  # the listing's own
    if job.reopens:
        opened = os.open(job.reopens, os.O_RDWR)
        for number in numbers:
            os.dup2(opened, number)
