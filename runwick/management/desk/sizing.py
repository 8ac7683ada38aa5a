"""What runs want of a machine, in figures: cores, memory, time. Pure functions of what was recorded.

Each answers None where fewer than `RUNS_MIN` runs say.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from runwick.contracts.listing import RunRecord
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.usage import Usage
from runwick.management.desk.figures import cpu_us, measured, rank_correlation, rss_peak_bytes, value_at, wall_us
from runwick.management.desk.machine import Machine

RUNS_MIN: Final = 20
"""Fewer runs are no ground for advice."""
HEADROOM: Final = 1.25
"""Memory of an executor over the peak that 99 % of the runs stay below."""
MEMORY_SHARE: Final = 0.8
"""Of the machine's memory, what executors may take together."""
PER_CORE_MAX: Final = 8
"""Executors for one core, however much their runs wait."""
NOTICEABLE_BYTES: Final = 64 * 1024 * 1024
"""Memory that is worth a word."""
KEPT: Final = 0.8
"""A run that ends with this share of what it took has given nothing back."""
GROWS: Final = 0.7
"""From this rank correlation on, one figure follows the other."""
RUNAWAY: Final = 2
"""A hard limit of memory is so many times the most that any run took…"""
HARD_MIN_BYTES: Final = 128 * 1024 * 1024
"""…and no less than this."""
SOFT_TIMES: Final = 2
"""A soft limit is so many times what half of the runs leave behind."""
SLOW_TIMES: Final = 10
"""A time limit is so many times what 99 % of the runs stay below, and twice the longest at least."""

_PRECISE_US: Final = 1_000
"""Of shorter runs the measuring itself is too much of the CPU time to tell threads by it."""
_STEP_BYTES: Final = 1024 * 1024
_LIMIT_STEP_BYTES: Final = 16 * _STEP_BYTES
_TIME_LADDER_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400)
_TIME_MAX_S: Final = 720 * 3_600
"""No time limit may be longer (`runwick.config.options.JOB_SETTINGS`)."""


class Growth(NamedTuple):
    """What executors took and kept beyond the smallest footprint, which stands for what they were forked with."""

    least_bytes: int
    most_bytes: int
    """The most that a run took beyond it."""
    large: int
    """How many runs took a noticeable amount…"""
    keeping: int
    """…and how many of those ended with most of it still held."""
    kept_bytes: int
    """What half of those that keep it, or more, left behind."""
    rises: bool
    """What is left behind grows from run to run."""

    @property
    def keeps(self) -> bool:
        """Whether memory usually does not come back."""
        return self.large >= RUNS_MIN and self.keeping > self.large / 2


def cores_of_a_run(usage: Usage) -> float | None:
    """How many cores it wants while it runs; more than 1 for one with threads or processes. One that was pushed off its
    core more often than it waited has wanted it all the time."""
    wall, cpu = wall_us(usage), cpu_us(usage)
    if not wall or cpu is None:
        return None
    is_pushed = (usage.switches_involuntary or 0) > (usage.switches_voluntary or 0)
    share = max(cpu / wall, 1.0) if is_pushed else cpu / wall
    return share if wall >= _PRECISE_US else min(share, 1.0)


def cores_of_runs(runs: Iterable[RunRecord]) -> float | None:
    """Of the middle one of these runs."""
    shares = [share for run in runs if run.usage is not None and (share := cores_of_a_run(run.usage)) is not None]
    return statistics.median(shares) if len(shares) >= RUNS_MIN else None


def cores_of_a_mix(runs: Iterable[RunRecord]) -> float | None:
    """Of runs of several types together: a type counts by the time that it keeps executors."""
    pairs = [
        (wall, share)
        for run in runs
        if run.usage is not None
        and (wall := wall_us(run.usage)) is not None
        and (share := cores_of_a_run(run.usage)) is not None
    ]
    total = sum(wall for wall, _ in pairs)
    return sum(wall * share for wall, share in pairs) / total if total and len(pairs) >= RUNS_MIN else None


def footprint_bytes(runs: Iterable[RunRecord]) -> int | None:
    """Memory that an executor wants, all that it shares included."""
    peaks = sorted(measured(runs, rss_peak_bytes))
    if len(peaks) < RUNS_MIN:
        return None
    return _rounded_up(value_at(peaks, 0.99) * HEADROOM, _STEP_BYTES)


def executors_fitting(footprint: int, machine: Machine) -> int:
    """How many of them fit into the machine's memory."""
    return max(1, int(machine.memory_bytes * MEMORY_SHARE) // footprint)


def executors_useful(cores_of_one: float, machine: Machine) -> int:
    """How many keep the machine's cores busy."""
    return max(1, math.ceil(machine.cores * min(PER_CORE_MAX, 1 / max(cores_of_one, 1 / PER_CORE_MAX)) - 1e-9))


def per_core_text(executors: int, machine: Machine) -> str:
    """As ``--executors-per-core`` takes it; rounded up again it gives that many."""
    return f"{max(0.01, math.floor(100 * executors / machine.cores) / 100):g}"


def growth_of(runs: Iterable[RunRecord]) -> Growth | None:
    """How executors grew over these runs, which are the latest first."""
    pairs = [
        (run.usage.rss_peak_bytes, run.usage.rss_end_bytes)
        for run in runs
        if run.usage is not None and run.usage.rss_peak_bytes is not None and run.usage.rss_end_bytes is not None
    ]
    if len(pairs) < RUNS_MIN:
        return None
    least = min(end for _, end in pairs)
    large = [(peak - least, end - least) for peak, end in pairs if peak - least >= NOTICEABLE_BYTES]
    kept = [end for peak, end in large if end >= KEPT * peak]
    ends = [end - least for _, end in reversed(pairs)]
    follows = rank_correlation(list(enumerate(ends)))
    return Growth(
        least_bytes=least,
        most_bytes=max(peak for peak, _ in pairs) - least,
        large=len(large),
        keeping=len(kept),
        kept_bytes=int(statistics.median(kept)) if kept else 0,
        rises=follows is not None and follows >= GROWS and max(ends) >= NOTICEABLE_BYTES,
    )


def hard_limit_bytes(growth: Growth) -> int:
    """For ``memory_hard``: what no run has come near."""
    return max(HARD_MIN_BYTES, _rounded_up(growth.most_bytes * RUNAWAY, _LIMIT_STEP_BYTES))


def soft_limit_bytes(growth: Growth) -> int:
    """For ``memory_soft``, of executors that keep what they took: more than one run leaves, and less than many do."""
    return max(NOTICEABLE_BYTES, _rounded_up(growth.kept_bytes * SOFT_TIMES, _LIMIT_STEP_BYTES))


def done_us(runs: Iterable[RunRecord]) -> list[int]:
    """How long those that succeeded took, sorted."""
    return sorted(measured((run for run in runs if run.outcome == OutcomeKind.SUCCEEDED), wall_us))


def time_limit_s(done: Sequence[int]) -> int:
    """A time limit that none of these runs, which are sorted, has come near; the next step of the ladder."""
    wanted_s = max(SLOW_TIMES * value_at(done, 0.99), 2 * done[-1]) / 1_000_000
    days_s = min(_rounded_up(wanted_s, 86_400), _TIME_MAX_S)
    return next((step for step in _TIME_LADDER_S if step >= wanted_s), days_s)


def _rounded_up(amount: float, step: int) -> int:
    return math.ceil(amount / step) * step
