"""What a time limit of 2 s stops, and when the executor takes its next job."""

import time
from typing import Final

from scripts.peers.measure import Bench, Column, Figures, Measure
from scripts.peers.runs import runs_of
from scripts.peers.sides.kinds import LIMIT_S, LIMITED
from scripts.peers.system import WORKERS, System
from scripts.peers.trial import Stalled, trial

SECONDS: Final = 6.0
"""How long a job takes that nobody stops."""
_BOUND_S: Final = 25
_LOOK_S: Final = 0.02


def once(bench: Bench, system: System) -> Figures:
    """Let every worker process run into its limit, with each kind of job."""
    return {kind: _stopped(bench, system, kind) for kind in LIMITED}


def _stopped(bench: Bench, system: System, kind: str) -> str:
    with trial(bench.grounds, system, job_ms=1_000 * SECONDS) as tried, tried.working() as tree:
        tried.dispatch(kind, WORKERS, SECONDS)
        until_s = time.monotonic() + _BOUND_S
        while len(runs_of(tried.board)) < WORKERS and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
        runs = runs_of(tried.board)
        if not runs:
            raise Stalled(f"no job began within {_BOUND_S} s; its workers said last: {tree.last_words()}")
        tried.dispatch("linger", WORKERS)
        until_s = time.monotonic() + _BOUND_S
        while time.monotonic() < until_s and len(runs_of(tried.board)) == len(runs):
            time.sleep(_LOOK_S)
        later = runs_of(tried.board)[len(runs) :]
        if not later:
            return f"no other job within {_BOUND_S} s"
        next_s = (later[0].begun_ns - runs[0].begun_ns) / 1e9
        time.sleep(max(0.0, runs[0].begun_ns / 1e9 + SECONDS + 1 - time.monotonic()))
        ran_on = sum(not run.goes_on for run in runs_of(tried.board)[: len(runs)])
    return f"{next_s:.1f} s" + (", not stopped" if ran_on else "")


MEASURE: Final = Measure(
    name="limits",
    title=f"A time limit of {LIMIT_S} s",
    text=f"Each worker process runs a job of {SECONDS:g} s under a limit of {LIMIT_S} s (where the system has one): "
    "when does the next job start, counted from the begin of the first? *Not stopped*: the call ran to its end all "
    "the same.",
    columns=(
        Column("python_loop", "Python loop"),
        Column("c_call_releasing", "C call without the lock"),
        Column("c_call_holding", "C call that holds the lock"),
    ),
    once=once,
    round_s=60,
    full=True,
)
