"""Figures of many runs: distributions, shares, how one grows with another. Pure functions of what was read."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from runwick.contracts.identity import id_text
from runwick.contracts.listing import RunRecord
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.usage import Usage
from runwick.management.bodies import DistributionBody, PointBody, TypeBody
from runwick.management.desk.shown import time_text

FAILURES: Final = frozenset(
    {
        OutcomeKind.FAILED,
        OutcomeKind.FAILED_PERMANENTLY,
        OutcomeKind.TIMED_OUT,
        OutcomeKind.CRASHED,
        OutcomeKind.ABANDONED,
    }
)
"""Outcomes that count as failures: neither what an operator cancelled nor what a stopping worker interrupted."""

Measure = Callable[[Usage], int | None]


def wall_us(usage: Usage) -> int | None:
    return usage.wall_us


def cpu_us(usage: Usage) -> int | None:
    """Of the executor and of its child processes."""
    own = usage.cpu_us
    return None if own is None else own + (usage.cpu_children_us or 0)


def rss_peak_bytes(usage: Usage) -> int | None:
    return usage.rss_peak_bytes


def allocated_bytes(usage: Usage) -> int | None:
    return usage.allocated_bytes


def has_failed(run: RunRecord) -> bool:
    """Whether its outcome counts as a failure."""
    return run.outcome in FAILURES


def measured(runs: Iterable[RunRecord], measure: Measure) -> list[int]:
    """One figure of all runs for which it is known."""
    values = (measure(run.usage) for run in runs if run.usage is not None)
    return [value for value in values if value is not None]


def value_at(ordered: Sequence[int], share: float) -> int:
    """The smallest of the values, which are sorted, that so large a share of them does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def distribution(values: Iterable[int]) -> DistributionBody | None:
    """How the values lie; None where there are none. Every figure of it is one of the values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return DistributionBody(
        count=len(ordered),
        minimum=ordered[0],
        p25=value_at(ordered, 0.25),
        p50=value_at(ordered, 0.50),
        p75=value_at(ordered, 0.75),
        p90=value_at(ordered, 0.90),
        p99=value_at(ordered, 0.99),
        maximum=ordered[-1],
    )


def rank_correlation(pairs: Sequence[tuple[int, int]]) -> float | None:
    """How far the second figure rises with the first, -1 to 1, by their ranks; None where one of them never changes."""
    firsts, seconds = _ranks([pair[0] for pair in pairs]), _ranks([pair[1] for pair in pairs])
    if len(set(firsts)) < 2 or len(set(seconds)) < 2:
        return None
    return statistics.correlation(firsts, seconds)


def type_body(name: str, runs: Sequence[RunRecord]) -> TypeBody:
    """The figures of one type's last runs, the latest first."""
    codes = Counter(run.code or run.outcome for run in runs if has_failed(run))
    return TypeBody(
        name=name,
        runs=len(runs),
        failed=codes.total(),
        codes=dict(codes.most_common()),
        last_at=time_text(runs[0].ended_at_ms) if runs else None,
        wall_us=distribution(measured(runs, wall_us)),
        cpu_us=distribution(measured(runs, cpu_us)),
        rss_peak_bytes=distribution(measured(runs, rss_peak_bytes)),
        allocated_bytes=distribution(measured(runs, allocated_bytes)),
    )


def point_body(run: RunRecord) -> PointBody:
    """One run, for a plot or a short list."""
    usage = run.usage or Usage()
    return PointBody(
        job_id=id_text(run.job_id),
        generation=run.generation,
        number=run.number,
        name=run.kind.name,
        queue=run.queue,
        tenant=run.tenant,
        ended_at=time_text(run.ended_at_ms),
        outcome=run.outcome,
        code=run.code,
        death=run.death,
        payload_bytes=run.payload_bytes,
        wall_us=usage.wall_us,
        cpu_us=cpu_us(usage),
        rss_peak_bytes=usage.rss_peak_bytes,
        allocated_bytes=usage.allocated_bytes,
    )


def _ranks(values: Sequence[int]) -> list[float]:
    """The rank of each, from 1; equal ones share the mean of theirs."""
    first: dict[int, int] = {}
    for rank, value in enumerate(sorted(values), 1):
        first.setdefault(value, rank)
    counts = Counter(values)
    return [first[value] + (counts[value] - 1) / 2 for value in values]
