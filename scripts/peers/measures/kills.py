"""What becomes of jobs when a process is killed: one that runs a job, and the one that manages them all."""

import math
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from scripts.peers.measure import Bench, Column, Figures, Measure
from scripts.peers.runs import Run, runs_of
from scripts.peers.sides.kinds import LINGER_S
from scripts.peers.system import System
from scripts.peers.tree import Tree
from scripts.peers.trial import Stalled, Trial, trial

JOBS: Final = 8
"""Of `LINGER_S` each: two or more run at the kill, and the others wait or were fetched ahead."""
BOUND_S: Final = 20
FULL_BOUND_S: Final = 150
_UNDER_WAY_S: Final = 0.15
"""Between the first job's begin and the kill."""
_EMPTY_S: Final = 4.0
"""A system that holds no job for so long will not run one again."""
_LOOK_S: Final = 0.02


class Fate(NamedTuple):
    """What became of the jobs."""

    again_s: float | None
    """From the kill until the last of the jobs that were lost with a process had begun again; None if one did not."""
    went_on: int
    """Jobs that ran at the kill, and went on to their end in an orphan."""
    late: int
    """Of the other jobs, so many had not ended within the bound."""
    others: int
    orphans: int
    """Processes of the killed tree that lived on half a second later."""
    orphans_begun: int
    """Jobs that orphans began after the kill."""
    is_lost: bool
    """The system itself held no job any more, and one had not begun again."""
    shut_down: bool
    """The main process ended because its child was killed."""


def once(bench: Bench, system: System) -> Figures:
    """Kill a child of one worker, and the main process of another."""
    bound_s = FULL_BOUND_S if bench.full else BOUND_S
    child, worker = (_repeated(kill, bench, system, bound_s) for kill in (_kill_child, _kill_worker))
    return {
        "child": _words(child, bound_s),
        "child_again_s": child.again_s,
        "child_others_late": child.late,
        "worker": _words(worker, bound_s),
        "worker_again_s": worker.again_s,
        "worker_others_late": worker.late,
        "orphans": worker.orphans,
        "orphans_begun": worker.orphans_begun,
    }


def _repeated(kill: Callable[[Bench, System, float], Fate], bench: Bench, system: System, bound_s: float) -> Fate:
    """Its answer; once more where nothing ran at the moment of the kill."""
    try:
        return kill(bench, system, bound_s)
    except Stalled:
        return kill(bench, system, bound_s)


def _kill_child(bench: Bench, system: System, bound_s: float) -> Fate:
    with trial(bench.grounds, system, job_ms=1_000 * LINGER_S) as tried, tried.working() as tree:
        victim = _running(tried, tree)[0].pid
        is_main = victim in tree.mains
        tree.kill(victim)
        killed_ns = time.monotonic_ns()
        if is_main:
            tree.restart(1)
        return _watched(tried, tree, {victim}, killed_ns, bound_s, set())


def _kill_worker(bench: Bench, system: System, bound_s: float) -> Fate:
    with trial(bench.grounds, system, job_ms=1_000 * LINGER_S) as tried, tried.working() as tree:
        victims = {run.pid for run in _running(tried, tree)}
        before = {process.pid for process in tree.members()}
        mains = tree.mains
        tree.kill_mains()
        killed_ns = time.monotonic_ns()
        tree.restart(len(mains))
        time.sleep(0.5)
        orphans = before & {process.pid for process in tree.members()}
        return _watched(tried, tree, victims, killed_ns, bound_s, orphans)


def _running(tried: Trial, tree: Tree) -> list[Run]:
    """The runs that go on once the jobs are under way."""
    tried.dispatch("linger", JOBS)
    until_s = time.monotonic() + BOUND_S
    while not any(run.goes_on for run in runs_of(tried.board)):
        if time.monotonic() > until_s:
            raise Stalled(f"no job began within {BOUND_S} s; its workers said last: {tree.last_words()}")
        time.sleep(_LOOK_S)
    time.sleep(_UNDER_WAY_S)
    running = [run for run in runs_of(tried.board) if run.goes_on]
    if not running:
        raise Stalled("its jobs ended before one could be killed")
    return running


def _watched(tried: Trial, tree: Tree, victims: set[int], killed_ns: int, bound_s: float, orphans: set[int]) -> Fate:
    """Look on until every job has ended, or nothing more will happen, or the bound is over."""
    lost = {run.number for run in runs_of(tried.board) if run.pid in victims and run.was_on(killed_ns)}
    if not lost:
        raise Stalled("its jobs ended before one could be killed")
    is_lost, shut_down = _looked_on(tried, tree, lost, killed_ns / 1e9 + bound_s)
    runs = runs_of(tried.board)
    went_on = {run.number for run in runs if run.begun_ns <= killed_ns < run.ended_ns} & lost
    return Fate(
        again_s=_again_s(runs, lost - went_on, killed_ns),
        went_on=len(went_on),
        late=len(set(range(JOBS)) - lost - _ended(tried)),
        others=JOBS - len(lost),
        orphans=len(orphans),
        orphans_begun=sum(run.pid in orphans and run.begun_ns > killed_ns for run in runs),
        is_lost=is_lost,
        shut_down=shut_down,
    )


def _looked_on(tried: Trial, tree: Tree, lost: set[int], until_s: float) -> tuple[bool, bool]:
    """Whether the system came to hold no job while one had not ended, and whether its main processes ended."""
    empty_since_s, shut_down = math.inf, False
    while time.monotonic() < min(until_s, empty_since_s + _EMPTY_S) and len(_ended(tried)) < JOBS:
        if not tree.mains:
            shut_down = True
            tree.restart(JOBS)
        others_ended = _ended(tried) >= set(range(JOBS)) - lost
        if others_ended and tried.system.left(tried.place) == 0:
            empty_since_s = min(empty_since_s, time.monotonic())
        else:
            empty_since_s = math.inf
        time.sleep(_LOOK_S)
    return empty_since_s < math.inf, shut_down


def _ended(tried: Trial) -> set[int]:
    return {run.number for run in runs_of(tried.board) if run.ended_ns}


def _again_s(runs: list[Run], lost: set[int], killed_ns: int) -> float | None:
    """From the kill until the last of the lost jobs had begun again; None if one did not, or none was lost."""
    found = [
        min((run.begun_ns for run in runs if run.number == number and run.begun_ns > killed_ns), default=math.inf)
        for number in lost
    ]
    latest_ns = max(found, default=math.inf)
    return round((latest_ns - killed_ns) / 1e9, 2) if latest_ns < math.inf else None


def _words(fate: Fate, bound_s: float) -> str:
    if fate.went_on and fate.went_on + fate.others == JOBS:
        told = ["its jobs went on in orphans"]
    elif fate.again_s is not None:
        told = [f"again after {fate.again_s:.2f} s"]
    else:
        told = ["never again: the system holds it no more" if fate.is_lost else f"not again within {bound_s:g} s"]
    if fate.late:
        told.append(f"{fate.late} of the {fate.others} other jobs not run within {bound_s:g} s")
    if fate.shut_down:
        told.append("the whole worker shut down and was started again")
    if fate.orphans:
        told.append(f"orphans that lived on: {fate.orphans}, which began {fate.orphans_begun} more jobs")
    return "; ".join(told)


MEASURE: Final = Measure(
    name="kills",
    title="When a process is killed",
    text=f"{JOBS} jobs of {LINGER_S:g} s each; soon after the first one began, SIGKILL. *Child*: the process that runs "
    "a job (where that is a main process, another is started at once, as a process manager does). *Worker*: all main "
    "processes, and others are started at once. What counts is when the jobs that ran there have begun again, and "
    f"whether the others are run. Looked at for {BOUND_S} s ({FULL_BOUND_S} s with `FULL=1`).",
    columns=(Column("child", "child killed"), Column("worker", "worker killed")),
    once=once,
    round_s=35,
)
