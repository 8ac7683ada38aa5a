"""How long a claim of 128 takes where something could stand in its way, beside one from a small store.

Every shape's stores stand beside each other and are claimed from in turn. The ratio of the medians is what counts; the
99th of 100 shows what it costs to look from the start again. `scoped` is another question: what a claim and its
settlement cost that judge limits and hold them, beside a plain one of as many jobs.
"""

import contextlib
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from runwick.contracts.attempts import ClaimPlan
from scripts.benchmarks.application import Nothing, Scoped
from scripts.benchmarks.figures import Assignment, Figure, Report, percentile
from scripts.benchmarks.ground import CLAIM, Ground, claimed_again, fresh_ground, ready_commands, succeeded
from scripts.benchmarks.shapes import LANES, SHAPES, Case, Size

SCOPED: Final = "scoped"
NAMES: Final = (*SHAPES, SCOPED)
CLAIMS = 100
"""Of each store."""
WARM_UP = 3
"""Claims of each before the measurement: after a fill the first ones read from the disk."""
JOBS: Final = 8
"""Of one claim of `scoped`, each with a scope of its own."""
GOAL = 1.5


class Shaped(NamedTuple):
    """What one shape came to."""

    figures: dict[str, Any]
    """By store, as JSON has them."""
    lines: list[Figure]
    ratio: float
    """The worst one of its large stores."""
    large: int


def run(assignment: Assignment) -> Report:
    """Measure one shape, or one after the other."""
    names = [assignment.shape] if assignment.shape else NAMES
    with fresh_ground(assignment.site) as ground:
        durability = ground.rw.store.profile
    shaped = {name: _shaped(assignment, name) for name in names if name != SCOPED}
    ours: dict[str, Any] = {"attempts": CLAIM, "claims": CLAIMS, "lanes": len(LANES)}
    ours |= {name: shape.figures for name, shape in shaped.items()}
    lines = [line for shape in shaped.values() for line in shape.lines]
    ratio = max((shape.ratio for shape in shaped.values()), default=None)
    if ratio is not None:
        lines.append(Figure("ratio", f"{ratio:.2f}", f"the worst one, half of the claims; the goal is {GOAL} or less"))
    if SCOPED in names:
        ours[SCOPED], of_limits = _scoped(assignment)
        lines += of_limits
    return Report(
        benchmark="claim",
        jobs=max((shape.large for shape in shaped.values()), default=JOBS),
        durability=durability,
        ours=ours,
        floor={},
        ratio=ratio,
        figures=lines,
    )


def _shaped(assignment: Assignment, name: str) -> Shaped:
    """Prepare all stores of a shape, then claim from them in turn."""
    shape, large = SHAPES[name]
    size = Size(assignment.jobs or large, WARM_UP + CLAIMS)
    with contextlib.ExitStack() as stack:
        assignment.say(f"claim: preparing {name}, {size.large:,} jobs")
        cases = shape(lambda: stack.enter_context(fresh_ground(assignment.site)), size, stack)
        assignment.say(f"claim: {len(cases)} stores in turn, {CLAIMS} claims of each")
        for _ in range(WARM_UP):
            for case in cases:
                case.go_through()
        for _ in range(CLAIMS):
            for case in cases:
                case.measure()
    small, *others = cases
    figures: dict[str, Any] = {case.name: _figures(case, small) for case in cases}
    for case in others:
        if case.line:
            figures["line"] = case.line.figures()
    return Shaped(figures, _lines(cases, figures), max(figures[case.name]["ratio"] for case in others), size.large)


def _figures(case: Case, small: Case) -> dict[str, float]:
    """What the claims of a store took and what they are beside those of the small one."""
    taken = {f"p{percent}_ms": round(percentile(case.taken_ms, percent), 3) for percent in (50, 99)}
    ratio = percentile(case.taken_ms, 50) / percentile(small.taken_ms, 50)
    return {**taken, "slowest_ms": round(max(case.taken_ms), 3), "ratio": round(ratio, 3)}


def _lines(cases: Sequence[Case], figures: dict[str, Any]) -> list[Figure]:
    lines = [
        Figure(case.name, f"{own['p50_ms']:.2f} ms", f"{case.meaning}; × {own['ratio']:.2f}")
        for case in cases
        for own in [figures[case.name]]
    ]
    if line := figures.get("line"):
        meaning = (
            f"and those called; {line['jobs']:,} in all, the last quarter × {line['last_to_first']:.2f} of the first"
        )
        lines.append(Figure("  line", f"{line['p50_ms']:.2f} ms", f"to settle those that hold the scope, {meaning}"))
    return lines


def _scoped(assignment: Assignment) -> tuple[dict[str, Any], list[Figure]]:
    """Claim and settle jobs without and with a scope each, in turn, from the same store."""
    assignment.say(f"claim: {CLAIMS} claims of {JOBS} plain jobs and of {JOBS} with a scope each, in turn")
    taken_ms: dict[str, list[tuple[float, float]]] = {"plain": [], SCOPED: []}
    with fresh_ground(assignment.site) as ground:
        plain, scoped = (ground.claim_plan(record, attempts=JOBS) for record in (Nothing, Scoped))
        for _ in range(WARM_UP + CLAIMS):
            taken_ms["plain"].append(_taken_ms(ground, [Nothing()] * JOBS, plain))
            taken_ms[SCOPED].append(_taken_ms(ground, [Scoped(str(number)) for number in range(JOBS)], scoped))
    figures = {
        name: {
            act: round(percentile([pair[place] for pair in taken[WARM_UP:]], 50), 3)
            for place, act in enumerate(("claim_ms", "settle_ms"))
        }
        for name, taken in taken_ms.items()
    }
    lines = [
        Figure(
            f"{act} of {JOBS}",
            f"{figures[SCOPED][key]:.2f} ms",
            f"with a scope each; plain {figures['plain'][key]:.2f} ms",
        )
        for act, key in (("claim", "claim_ms"), ("settle", "settle_ms"))
    ]
    return figures, lines


def _taken_ms(ground: Ground, jobs: Sequence[Nothing | Scoped], plan: ClaimPlan) -> tuple[float, float]:
    """What a claim and a settlement of these jobs took, all of them dispatched before."""
    store = ground.rw.store
    store.run(store.dispatch([command for job in jobs for command in ready_commands(ground.rw, job, 1)]))
    plan = claimed_again(plan)
    started = time.perf_counter()
    attempts = store.run(store.claim(plan)).attempts
    claimed = time.perf_counter()
    assert len(attempts) == JOBS, f"a claim found {len(attempts)} of {JOBS} jobs"
    store.run(store.settle(succeeded(attempts)))
    return 1_000 * (claimed - started), 1_000 * (time.perf_counter() - claimed)
