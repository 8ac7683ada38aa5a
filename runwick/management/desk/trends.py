"""How figures went over time, and what is used just now, from the runs that ended last."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from runwick.contracts.activity import ExecutorActivity
from runwick.contracts.listing import RUNS_MAX, RunRecord
from runwick.management.bodies import TrendBody
from runwick.management.desk.figures import cpu_us

STEPS: Final = 30
"""Values of one trend."""
STEP_LADDER_MS: Final = (1_000, 5_000, 15_000, 60_000, 300_000, 900_000, 3_600_000)
"""How long one step may be: the longest with which the runs that were read fill all steps."""
STEP_USUAL_MS: Final = 60_000
"""How long it is at least, where every run that ever ended was read."""
CORES_OVER_MS: Final = 60_000
"""What is used just now is a mean over this time."""


class Window(NamedTuple):
    """The time that trends show: `STEPS` steps, the last of which ends now, so that what has just happened is seen."""

    until_ms: int
    step_ms: int
    is_sampled: bool
    """Runs ended in it that were not read."""

    @property
    def from_ms(self) -> int:
        return self.until_ms - STEPS * self.step_ms


class CoresUsed(NamedTuple):
    """What handlers use just now."""

    mean: float
    """Cores."""
    over_ms: int
    """The time of which this is the mean, up to now."""


def window_of(runs: Sequence[RunRecord], now_ms: int) -> Window:
    """The window that fits these runs, which are the latest first."""
    oldest_ms = min((run.ended_at_ms for run in runs), default=now_ms)
    reaches_back_ms = now_ms - oldest_ms
    if len(runs) >= RUNS_MAX:
        filled = [step for step in STEP_LADDER_MS if STEPS * step <= reaches_back_ms]
        step_ms = max(filled, default=STEP_LADDER_MS[0])
    else:
        enough = [step for step in STEP_LADDER_MS if step >= STEP_USUAL_MS and STEPS * step >= reaches_back_ms]
        step_ms = min(enough, default=STEP_LADDER_MS[-1])
    is_sampled = len(runs) >= RUNS_MAX and oldest_ms > now_ms - STEPS * step_ms
    return Window(now_ms, step_ms, is_sampled)


def trend_of(runs: Iterable[RunRecord], window: Window) -> TrendBody:
    """How many of these runs ended in each step."""
    values = [0] * STEPS
    for run in runs:
        steps_ago = (window.until_ms - run.ended_at_ms) // window.step_ms
        if 0 <= steps_ago < STEPS:
            values[-1 - steps_ago] += 1
    return TrendBody(step_ms=window.step_ms, values=tuple(values), is_sampled=window.is_sampled)


def cores_used(
    runs: Sequence[RunRecord], executors: Iterable[ExecutorActivity], now_ms: int, over_ms: int = CORES_OVER_MS
) -> CoresUsed | None:
    """The mean number of cores inside handlers over the last `over_ms`, or less where runs were not read that far
    back: what ended runs used, and what running ones have so far as their workers last told, each as far as it falls
    into that time, spread evenly over the run. None where nothing measured it.

    Args:
        runs: the latest first.
        executors: what they do now.
        now_ms: up to when.
    """
    from_ms, used_us, is_measured = now_ms - over_ms, 0.0, False
    if len(runs) >= RUNS_MAX:
        from_ms = min(now_ms, max(from_ms, min(run.ended_at_ms for run in runs)))
    for run in runs:
        spent_us = None if run.usage is None else cpu_us(run.usage)
        if spent_us is not None and run.ended_at_ms > from_ms:
            is_measured = True
            used_us += spent_us * share_since(from_ms, run.begun_at_ms, run.ended_at_ms)
    for executor in executors:
        if executor.cpu_us is not None and executor.begun_at_ms is not None:
            is_measured = True
            used_us += executor.cpu_us * share_since(from_ms, executor.begun_at_ms, now_ms)
    if not is_measured or now_ms <= from_ms:
        return None
    return CoresUsed(used_us / ((now_ms - from_ms) * 1_000), now_ms - from_ms)


def share_since(from_ms: int, begun_at_ms: int | None, ended_at_ms: int) -> float:
    """Which share of a run lies behind a point in time."""
    if begun_at_ms is None or begun_at_ms >= from_ms:
        return 1.0
    return (ended_at_ms - from_ms) / (ended_at_ms - begun_at_ms)
