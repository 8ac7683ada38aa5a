"""What the figures of one job type suggest. Each piece of advice says the rule by which it came about.

Rules are functions of the last runs; a rule that has too little to go by says nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from runwick.config.durations import SECOND, duration_text
from runwick.config.sizes import bytes_text
from runwick.contracts.listing import RunRecord
from runwick.contracts.outcomes import OutcomeKind
from runwick.management.amounts import elapsed, percent, size
from runwick.management.bodies import AdviceBody
from runwick.management.desk import sizing
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
from runwick.management.desk.sizing import GROWS, HEADROOM, KEPT, MEMORY_SHARE, NOTICEABLE_BYTES, RUNS_MIN

CPU_BOUND: Final = 0.8
"""From this share of CPU time in wall time on, a run keeps a core busy."""
WAITING: Final = 0.3
"""Up to this share it mostly waits."""
PARALLEL: Final = 1.2
"""From so many cores on a run has threads or processes that compute beside it."""
DIFFERS: Final = 1.2
"""What 90 % of the runs stay below must be so many times what 10 % do, for a cost to grow with anything."""
NEAR_LIMIT: Final = 0.8
"""Runs that take this share of their time limit are near it."""


class Basis(NamedTuple):
    """What advice rests on."""

    runs: Sequence[RunRecord]
    """Of one type, the latest first."""
    machine: Machine
    time_limit_ms: int | None
    """The declared one, if there is one and it is known."""
    is_limit_known: bool
    """Whether what is declared was looked at."""


def advice_on(
    runs: Sequence[RunRecord], machine: Machine, time_limit_ms: int | None, *, is_limit_known: bool = False
) -> tuple[AdviceBody, ...]:
    """Everything that the runs of one type suggest, what is wrong first."""
    basis = Basis(runs, machine, time_limit_ms, is_limit_known)
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
    done = sizing.done_us(basis.runs)
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


def _no_time_limit(basis: Basis) -> Iterator[AdviceBody]:
    done = sizing.done_us(basis.runs)
    if not basis.is_limit_known or basis.time_limit_ms is not None or len(done) < RUNS_MIN:
        return
    limit = sizing.time_limit_s(done) * SECOND
    yield AdviceBody(
        code="no_time_limit",
        text=f"It has no time limit. Of {len(done):,} runs that succeeded 99 % took {elapsed(value_at(done, 0.99))} or "
        f"less and the longest {elapsed(done[-1])}: execution_timeout of {duration_text(limit)} stops only what hangs.",
        settings={"execution_timeout": duration_text(limit)},
    )


def _memory(basis: Basis) -> Iterator[AdviceBody]:
    peaks, wanted = sorted(measured(basis.runs, rss_peak_bytes)), sizing.footprint_bytes(basis.runs)
    if wanted is None:
        return
    high = size(value_at(peaks, 0.99))
    yield AdviceBody(
        code="memory_per_executor",
        text=f"An executor wants {size(wanted)}: 99 % of {len(peaks):,} runs peaked at {high} or below, and "
        f"{percent(HEADROOM - 1)} more is headroom.",
    )
    wants = sizing.cores_of_runs(basis.runs)
    if wants is None:
        return
    machine = basis.machine
    fit, useful = sizing.executors_fitting(wanted, machine), sizing.executors_useful(wants, machine)
    yield AdviceBody(
        code="executors",
        text=f"On this machine, with {machine.cores} cores and {size(machine.memory_bytes)}, "
        f"{min(fit, useful)} executors make sense: {fit} fit into {percent(MEMORY_SHARE)} of its memory, and {useful} "
        f"keep its cores busy, since a run {_cores_text(wants)}.",
        settings={"executors_per_core": sizing.per_core_text(min(fit, useful), machine)},
    )


def _memory_limit(basis: Basis) -> Iterator[AdviceBody]:
    growth = sizing.growth_of(basis.runs)
    if growth is not None:
        limit = bytes_text(sizing.hard_limit_bytes(growth))
        yield AdviceBody(
            code="memory_limit",
            text=f"No run took more than {size(growth.most_bytes)} beyond the smallest footprint of its executors, "
            f"{size(growth.least_bytes)}: memory_hard of {limit} stops only what runs away.",
            settings={"memory_hard": limit},
        )


def _boundedness(basis: Basis) -> Iterator[AdviceBody]:
    wants = sizing.cores_of_runs(basis.runs)
    if wants is None:
        return
    if wants >= PARALLEL:
        yield AdviceBody(
            code="parallel",
            text=f"It computes beside itself: half of its runs keep {wants:.1f} cores busy (from {PARALLEL} on). "
            "With an executor on each core they get in each other's way: let numeric libraries use one thread "
            "(numeric_threads), or run fewer executors.",
            settings={"numeric_threads": "1"},
        )
        return
    found = f"half of its runs use a core for {percent(min(1.0, wants))} of their time or more"
    if wants >= CPU_BOUND:
        yield AdviceBody(
            code="cpu_bound",
            text=f"It is bound by CPU: {found} (from {percent(CPU_BOUND)} on). More executors than cores do not help.",
        )
    elif wants <= WAITING:
        yield AdviceBody(
            code="waiting",
            text=f"It mostly waits: {found} (up to {percent(WAITING)}). More executors than cores help, as far as "
            "memory goes; so do asynchronous handlers in a worker of their own.",
        )


def _kept_memory(basis: Basis) -> Iterator[AdviceBody]:
    """Whether what a run takes beyond the smallest footprint is still there when it ends, and adds up."""
    growth = sizing.growth_of(basis.runs)
    if growth is None or not (growth.keeps or growth.rises):
        return
    limit = bytes_text(sizing.soft_limit_bytes(growth))
    replaced = f"Look for what keeps it, or have executors replaced with memory_soft of {limit}."
    if growth.keeps:
        yield AdviceBody(
            code="memory_kept",
            text=f"Memory does not come back: of {growth.large:,} runs that took {size(NOTICEABLE_BYTES)} or more, "
            f"{growth.keeping:,} ended with {percent(KEPT)} of it still held. {replaced}",
            settings={"memory_soft": limit},
        )
    else:
        yield AdviceBody(
            code="memory_grows",
            text=f"Memory grows from run to run: executors end with more the later a run is (rank correlation of "
            f"{GROWS} or more). {replaced}",
            settings={"memory_soft": limit},
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
        values = sorted(value for _, value in pairs)
        # Where the values hardly differ, their order means nothing.
        differs = len(pairs) >= RUNS_MIN and value_at(values, 0.9) >= DIFFERS * value_at(values, 0.1)
        grows = rank_correlation(pairs) if differs else None
        if grows is not None and grows >= GROWS:
            yield AdviceBody(
                code=code,
                text=f"Its {what} grows with the payload (rank correlation {grows:.2f} over {len(pairs):,} runs, from "
                f"{GROWS} on). Splitting large jobs evens it out.",
            )


def _cores_text(wants: float) -> str:
    return f"keeps {wants:.1f} cores busy" if wants >= PARALLEL else f"uses a core for {percent(wants)} of its time"


_RULES: Final[Sequence[Callable[[Basis], Iterator[AdviceBody]]]] = (
    _deaths_for_memory,
    _time_limit,
    _kept_memory,
    _memory,
    _memory_limit,
    _boundedness,
    _no_time_limit,
    _payload_size,
)
