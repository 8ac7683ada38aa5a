"""What the figures of one job type suggest. Each piece of advice says the rule by which it came about.

Rules are functions of the last runs; a rule that has too little to go by says nothing.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from runwick.contracts.listing import RunRecord
from runwick.contracts.outcomes import OutcomeKind
from runwick.management.amounts import elapsed, percent, size
from runwick.management.bodies import AdviceBody
from runwick.management.desk.figures import (
    Measure,
    allocated_bytes,
    cpu_us,
    measured,
    rank_correlation,
    rss_peak_bytes,
    value_at,
    wall_us,
)
from runwick.management.desk.machine import Machine

RUNS_MIN: Final = 20
"""Fewer runs are no ground for advice."""
HEADROOM: Final = 1.25
"""Memory of an executor over the peak that 99 % of the runs stay below."""
MEMORY_SHARE: Final = 0.8
"""Of the machine's memory, what executors may take together."""
CPU_BOUND: Final = 0.8
"""From this share of CPU time in wall time on, a run keeps a core busy."""
WAITING: Final = 0.3
"""Up to this share it mostly waits."""
PER_CORE_MAX: Final = 8
"""Executors for one core, however much their runs wait."""
NEAR_LIMIT: Final = 0.8
"""Runs that take this share of their time limit are near it."""
NOTICEABLE_BYTES: Final = 64 * 1024 * 1024
"""Memory that is worth a word."""
KEPT: Final = 0.8
"""A run that ends with this share of what it took has given nothing back."""
GROWS: Final = 0.7
"""From this rank correlation on, one figure follows the other."""

_STEP_BYTES: Final = 1024 * 1024


class Basis(NamedTuple):
    """What advice rests on."""

    runs: Sequence[RunRecord]
    """Of one type, the latest first."""
    machine: Machine
    time_limit_ms: int | None
    """The declared one, where it is known."""


def advice_on(runs: Sequence[RunRecord], machine: Machine, time_limit_ms: int | None) -> tuple[AdviceBody, ...]:
    """Everything that the runs of one type suggest, what is wrong first."""
    basis = Basis(runs, machine, time_limit_ms)
    return tuple(advice for rule in _RULES for advice in rule(basis))


def _deaths_for_memory(basis: Basis) -> Iterator[AdviceBody]:
    died = sum(run.death in ("out_of_memory", "memory_limit") for run in basis.runs)
    if died:
        yield AdviceBody(
            code="crashes_for_memory",
            text=f"{died:,} of the last {len(basis.runs):,} runs died for memory. Give each executor more, run fewer "
            "at once, or let one job do less.",
        )


def _time_limit(basis: Basis) -> Iterator[AdviceBody]:
    """Against the declared limit; where that is not known, against the shortest run that was stopped for it."""
    stopped = [run for run in basis.runs if run.outcome == OutcomeKind.TIMED_OUT]
    done = sorted(measured((run for run in basis.runs if run.outcome == OutcomeKind.SUCCEEDED), wall_us))
    limits = measured(stopped, wall_us) if basis.time_limit_ms is None else [basis.time_limit_ms * 1000]
    if len(done) < RUNS_MIN or not limits:
        return
    limit_us, slow_us = min(limits), value_at(done, 0.99)
    if stopped or slow_us >= NEAR_LIMIT * limit_us:
        was_stopped = f"{len(stopped):,} of the last {len(basis.runs):,} runs were stopped for their time limit. "
        yield AdviceBody(
            code="near_time_limit",
            text=(was_stopped if stopped else "")
            + f"99 % of those that succeed take up to {elapsed(slow_us)}; the limit is {elapsed(limit_us)}, and from "
            f"{percent(NEAR_LIMIT)} of it on a run counts as near it. Raise the limit, or let one job do less.",
        )


def _memory(basis: Basis) -> Iterator[AdviceBody]:
    peaks = sorted(measured(basis.runs, rss_peak_bytes))
    if len(peaks) < RUNS_MIN:
        return
    peak, wanted = value_at(peaks, 0.99), _wanted_bytes(peaks)
    yield AdviceBody(
        code="memory_per_executor",
        text=f"An executor wants {size(wanted)}: 99 % of {len(peaks):,} runs peaked at {size(peak)} or below, and "
        f"{percent(HEADROOM - 1)} more is headroom.",
    )
    fit = max(1, int(basis.machine.memory_bytes * MEMORY_SHARE) // wanted)
    busy = _busy_share(basis.runs)
    if busy is None:
        return
    useful = math.ceil(basis.machine.cores * min(PER_CORE_MAX, 1 / max(busy, 1 / PER_CORE_MAX)))
    yield AdviceBody(
        code="executors",
        text=f"On this machine, with {basis.machine.cores} cores and {size(basis.machine.memory_bytes)}, "
        f"{min(fit, useful)} executors make sense: {fit} fit into {percent(MEMORY_SHARE)} of its memory, and {useful} "
        f"keep its cores busy, since a run uses a core for {percent(busy)} of its time.",
    )


def _boundedness(basis: Basis) -> Iterator[AdviceBody]:
    busy = _busy_share(basis.runs)
    if busy is None:
        return
    found = f"half of its runs use a core for {percent(busy)} of their time or more"
    if busy >= CPU_BOUND:
        yield AdviceBody(
            code="cpu_bound",
            text=f"It is bound by CPU: {found} (from {percent(CPU_BOUND)} on). More executors than cores do not help.",
        )
    elif busy <= WAITING:
        yield AdviceBody(
            code="waiting",
            text=f"It mostly waits: {found} (up to {percent(WAITING)}). More executors than cores help, as far as "
            "memory goes; so do asynchronous handlers in a worker of their own.",
        )


def _kept_memory(basis: Basis) -> Iterator[AdviceBody]:
    """Whether what a run takes beyond the smallest footprint is still there when it ends."""
    pairs = [
        (run.usage.rss_peak_bytes, run.usage.rss_end_bytes)
        for run in basis.runs
        if run.usage is not None and run.usage.rss_peak_bytes is not None and run.usage.rss_end_bytes is not None
    ]
    if len(pairs) < RUNS_MIN:
        return
    least = min(end for _, end in pairs)
    large = [(peak - least, end - least) for peak, end in pairs if peak - least >= NOTICEABLE_BYTES]
    keeping = sum(end >= KEPT * peak for peak, end in large)
    if len(large) >= RUNS_MIN and keeping > len(large) / 2:
        yield AdviceBody(
            code="memory_kept",
            text=f"Memory does not come back: of {len(large):,} runs that took {size(NOTICEABLE_BYTES)} or more, "
            f"{keeping:,} ended with {percent(KEPT)} of it still held. Look for what keeps it, or have executors "
            "replaced with recycle_attempts or memory_soft.",
        )


def _payload_size(basis: Basis) -> Iterator[AdviceBody]:
    measures: Sequence[tuple[str, str, Measure]] = (
        ("cpu_follows_payload", "CPU time", cpu_us),
        ("memory_follows_payload", "peak memory", rss_peak_bytes),
        ("allocations_follow_payload", "allocation", allocated_bytes),
    )
    for code, what, measure in measures:
        pairs = [
            (run.payload_bytes, value)
            for run in basis.runs
            if run.usage is not None and (value := measure(run.usage)) is not None
        ]
        grows = rank_correlation(pairs) if len(pairs) >= RUNS_MIN else None
        if grows is not None and grows >= GROWS:
            yield AdviceBody(
                code=code,
                text=f"Its {what} grows with the payload (rank correlation {grows:.2f} over {len(pairs):,} runs, from "
                f"{GROWS} on). Splitting large jobs evens it out.",
            )


def _wanted_bytes(peaks: Sequence[int]) -> int:
    return math.ceil(value_at(peaks, 0.99) * HEADROOM / _STEP_BYTES) * _STEP_BYTES


def _busy_share(runs: Sequence[RunRecord]) -> float | None:
    """The median share of CPU time in wall time, at most 1; None where too few runs say."""
    shares = [
        min(1.0, cpu / wall)
        for run in runs
        if run.usage is not None and (wall := run.usage.wall_us) and (cpu := cpu_us(run.usage)) is not None
    ]
    return statistics.median(shares) if len(shares) >= RUNS_MIN else None


_RULES: Final[Sequence[Callable[[Basis], Iterator[AdviceBody]]]] = (
    _deaths_for_memory,
    _time_limit,
    _kept_memory,
    _memory,
    _boundedness,
    _payload_size,
)
