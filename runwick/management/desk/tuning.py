"""How to run the types of an application together: the advice on each, and one recommendation for all.

Executors run whatever comes, so an option of theirs must do for every type: of what the types want the most counts, and
of their computing the mix of what ran last.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from runwick.config.sizes import bytes_text, parse_bytes
from runwick.contracts.listing import RunRecord
from runwick.management.amounts import percent, size
from runwick.management.bodies import AdviceBody, Body, LimitingBody
from runwick.management.desk import sizing
from runwick.management.desk.advice import advice_on
from runwick.management.desk.machine import Machine
from runwick.management.desk.sizing import MEMORY_SHARE, RUNS_MIN


class TypeTuningBody(Body, frozen=True, kw_only=True):
    """One type."""

    name: str
    runs: int
    """On which the advice rests."""
    is_enough: bool
    """Whether those are enough for advice."""
    advice: tuple[AdviceBody, ...]


class TuningBody(Body, frozen=True, kw_only=True):
    """How to run all of it."""

    types: tuple[TypeTuningBody, ...]
    advice: tuple[AdviceBody, ...]
    """For all together; empty where too few runs say anything."""
    settings: dict[str, str]
    """All values of that advice."""
    limiting: LimitingBody


class TypeRuns(NamedTuple):
    """What is known of one type."""

    runs: Sequence[RunRecord]
    """The latest first."""
    time_limit_ms: int | None
    """The declared one, if there is one."""


def tuning_of(
    types: Mapping[str, TypeRuns], mix: Sequence[RunRecord], machine: Machine, limiting: LimitingBody
) -> TuningBody:
    """What to do about all of them.

    Args:
        mix: the last runs of all types together.
    """
    each = tuple(_type_body(name, known, machine) for name, known in types.items())
    advice = tuple(_together(types, mix, machine, each))
    settings = {name: value for one in advice for name, value in one.settings.items()}
    return TuningBody(types=each, advice=advice, settings=settings, limiting=limiting)


def _type_body(name: str, known: TypeRuns, machine: Machine) -> TypeTuningBody:
    return TypeTuningBody(
        name=name,
        runs=len(known.runs),
        is_enough=len(known.runs) >= RUNS_MIN,
        advice=advice_on(known.runs, machine, known.time_limit_ms, is_limit_known=True),
    )


def _together(
    types: Mapping[str, TypeRuns], mix: Sequence[RunRecord], machine: Machine, each: Sequence[TypeTuningBody]
) -> Iterator[AdviceBody]:
    yield from _executors(types, mix, machine)
    yield from _memory(each)
    if any("numeric_threads" in one.settings for body in each for one in body.advice):
        yield AdviceBody(
            code="numeric_threads",
            text="Some runs use several cores at once, and executors get in each other's way.",
            settings={"numeric_threads": "1"},
        )


def _executors(types: Mapping[str, TypeRuns], mix: Sequence[RunRecord], machine: Machine) -> Iterator[AdviceBody]:
    wants = sizing.cores_of_a_mix(mix)
    footprints = [wanted for known in types.values() if (wanted := sizing.footprint_bytes(known.runs)) is not None]
    if wants is None or not footprints:
        return
    useful, fit = sizing.executors_useful(wants, machine), sizing.executors_fitting(max(footprints), machine)
    executors = min(useful, fit)
    by_memory = f", but only {fit} of {size(max(footprints))} fit into {percent(MEMORY_SHARE)} of its memory"
    yield AdviceBody(
        code="executors_per_core",
        text=f"{executors} executors on {machine.cores} cores: in the last {len(mix):,} runs they computed for "
        f"{percent(wants)} of their time, so {useful} keep the cores busy{by_memory if fit < useful else ''}.",
        settings={"executors_per_core": sizing.per_core_text(executors, machine)},
    )


def _memory(each: Sequence[TypeTuningBody]) -> Iterator[AdviceBody]:
    hard, hard_of = _most("memory_hard", each)
    soft, soft_of = _most("memory_soft", each)
    if not hard:
        return
    hard = max(hard, sizing.RUNAWAY * soft)
    yield AdviceBody(
        code="memory_hard",
        text=f"An executor that grew by more is killed. {hard_of} takes most, and has never come near.",
        settings={"memory_hard": bytes_text(hard)},
    )
    if soft:
        yield AdviceBody(
            code="memory_soft",
            text=f"An executor that has grown by more is replaced between runs, since {soft_of} does not give back "
            "what it took.",
            settings={"memory_soft": bytes_text(soft)},
        )
    else:
        yield AdviceBody(
            code="no_recycling",
            text="Recycling by memory, attempts or age: nothing recorded asks for it, memory comes back after runs.",
        )


def _most(setting: str, each: Sequence[TypeTuningBody]) -> tuple[int, str]:
    """The largest value that the types want, in bytes, and whose it is; 0 where none wants any."""
    wanted = [
        (parse_bytes(one.settings[setting]), body.name)
        for body in each
        for one in body.advice
        if setting in one.settings
    ]
    return max(wanted, default=(0, ""))
