"""What all measures do with one system: fill its queue, let its workers run, watch the board."""

import contextlib
import dataclasses
import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import psutil
import psycopg

from scripts.peers.board import Board, Standing
from scripts.peers.grounds import Grounds
from scripts.peers.system import PROJECT, WORKERS, Place, System
from scripts.peers.tree import Tree, cpu_s

BULK: Final = 1_000
"""Jobs of one call where a queue is only filled."""
FILL_S: Final = 180
STALL_S: Final = 30
"""A drain in which nothing ends for so long has failed."""
_LOOK_S: Final = 0.01
_LOOK_CLOSELY_S: Final = 0.001


class Stalled(Exception):
    """A measurement came to no end; the message says how far it came, for people."""


class Drain(NamedTuple):
    """One queue, worked off."""

    jobs: int
    """Of them, so many ended within the window…"""
    seconds: float
    """…which begins when every worker process has ended a job, and ends with the last job."""
    share: float
    """CPU time of the handlers' bodies in the window, as a share of the worker processes' cores."""
    workers_cpu_s: float
    mains_cpu_s: float
    """Of the main processes alone."""
    server_cpu_s: float
    processes: int
    """That ended jobs."""
    left: int | None
    """What the system says is left in the end."""


class Trial:
    """One system in one place."""

    def __init__(self, grounds: Grounds, system: System, place: Place) -> None:
        self.system, self.place = system, place
        self.board: Board = place.board
        self._grounds = grounds

    def dispatch(self, kind: str, count: int, argument: float = 0, *options: str, wait_s: float = FILL_S) -> float:
        """Have its producer dispatch `count` jobs; answers the seconds from its first call until after its last.

        Raises:
            Stalled: it failed or took longer than `wait_s`.
        """
        with self.producing(kind, count, argument, *options) as producer:
            return told_seconds(producer, wait_s)

    @contextlib.contextmanager
    def producing(self, kind: str, count: int, argument: float, *options: str) -> Iterator["subprocess.Popen[str]"]:
        """The same as a process, which is gone in the end."""
        command = self.system.producer("produce", kind, str(count), str(argument), *options)
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, cwd=PROJECT, env=self.place.variables, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    @contextlib.contextmanager
    def working(self, *, warm: bool = True) -> Iterator[Tree]:
        """Its workers; if `warm`, they have run a job when this begins."""
        with Tree(self.system, self.place) as tree:
            if warm:
                ended = self.board.standing().ended
                self.dispatch("nothing", 2)
                self.wait_for(tree, ended + 2)
            yield tree

    def wait_for(self, tree: Tree, ended: int, look_s: float = _LOOK_S) -> Standing:
        """What the board says once so many handlers have ended.

        Raises:
            Stalled: none ended for `STALL_S`.
        """
        seen, since_s = -1, time.monotonic()
        while (standing := self.board.standing()).ended < ended:
            if standing.ended > seen:
                seen, since_s = standing.ended, time.monotonic()
            if time.monotonic() > since_s + STALL_S:
                words = f"stalled at {standing.ended:,} of {ended:,} jobs; its workers said last: {tree.last_words()}"
                raise Stalled(words)
            time.sleep(look_s)
        return standing

    def drain(self, kind: str, jobs: int, argument: float = 0) -> Drain:
        """Fill the queue, let the server take note of it, start the workers, and let them empty it."""
        self.dispatch(kind, jobs, argument, "--bulk", str(BULK))
        if self.system.store == "postgres":
            # Elsewhere no queue is filled from nothing in a second: without statistics some plan badly for minutes.
            with psycopg.connect(self.place.url, autocommit=True) as connection:
                connection.execute("VACUUM (ANALYZE)")
        with self.working(warm=False) as tree:
            first = self._begun(tree, jobs)
            costs = self._costs(tree)
            last = self.wait_for(tree, jobs)
            spent = [after - before for before, after in zip(costs, self._costs(tree), strict=True)]
            left = self._left()
        seconds = (last.last_ns - first.at_ns) / 1e9
        return Drain(
            jobs=jobs - first.ended,
            seconds=seconds,
            share=(last.cpu_ns - first.cpu_ns) / 1e9 / (WORKERS * seconds),
            workers_cpu_s=spent[0],
            mains_cpu_s=spent[1],
            server_cpu_s=spent[2],
            processes=last.processes,
            left=left,
        )

    def _begun(self, tree: Tree, jobs: int) -> Standing:
        """The start of the window: when every worker process has ended a job, or, where one alone works off a good
        part of them before that, when the first job has ended."""
        first = standing = self.wait_for(tree, 1, _LOOK_CLOSELY_S)
        while standing.processes < WORKERS and standing.ended < jobs // 4:
            standing = self.wait_for(tree, standing.ended + 1, _LOOK_CLOSELY_S)
        return standing if standing.ended < jobs // 2 else first

    def _costs(self, tree: Tree) -> tuple[float, float, float]:
        """CPU seconds so far: of all worker processes, of the main ones, of the server."""
        members = tree.members()
        mains = [process for process in members if process.pid in tree.mains]
        server = [_process(pid) for pid in self._grounds.server_pids(self.system.store)]
        return cpu_s(members), _own_s(mains), cpu_s(filter(None, server))

    def _left(self) -> int | None:
        """What is left, by the system's own word; what it settles behind the handlers has ten seconds."""
        until_s = time.monotonic() + 10
        while (left := self.system.left(self.place)) and time.monotonic() < until_s:
            time.sleep(0.1)
        return left


@contextlib.contextmanager
def trial(
    grounds: Grounds,
    system: System,
    variables: Mapping[str, str] = MappingProxyType({}),
    *,
    job_ms: float = 0.0,
) -> Iterator[Trial]:
    """A system in an empty place, which it has prepared; its processes see these environment variables as well.

    `job_ms` is about how long a job will work.

    Raises:
        Stalled: it could not.
    """
    with grounds.place(system) as empty:
        place = dataclasses.replace(empty, store_variables={**empty.store_variables, **variables}, job_ms=job_ms)
        for command in system.prepare(place):
            done = subprocess.run(
                command, cwd=PROJECT, env=place.variables, capture_output=True, text=True, timeout=FILL_S
            )
            if done.returncode:
                raise Stalled(f"`{' '.join(command[1:3])}` failed: {_last_line(done.stderr or done.stdout)}")
        yield Trial(grounds, system, place)


def told_seconds(producer: "subprocess.Popen[str]", wait_s: float) -> float:
    """What a producer says in the end.

    Raises:
        Stalled: it failed or took longer.
    """
    try:
        out, errors = producer.communicate(timeout=wait_s)
    except subprocess.TimeoutExpired as late:
        raise Stalled(f"its producer was not done within {wait_s:g} s") from late
    if producer.returncode:
        raise Stalled(f"its producer failed: {_last_line(errors)}")
    told: dict[str, Any] = json.loads(out.splitlines()[-1])
    return float(told["seconds"])


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no word"])[-1][:200]


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def _own_s(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)
