"""One run's life as steps with what lay between them, and what its last measured attempt cost.

::

    created ─▶ attempts of generation 1 ─▶ its end ─▶ retried or rerun ─▶ attempts of generation 2 ─▶ …
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from runwick.contracts.controls import ControlAction
from runwick.management.bodies import AttemptBody, AuditBody, JobDetailBody, UsageBody
from runwick.management.dashboard import texts

_OPENED: Final = {ControlAction.RETRY.value: "Retried", ControlAction.RERUN.value: "Rerun"}
"""What opens a generation."""
_ENDED: Final = {"succeeded": "succeeded", "cancelled": "cancelled"}
"""The state in which an attempt's outcome leaves a run for good; every other one leaves it failed."""


class Step(msgspec.Struct, frozen=True):
    """Something that happened to a run."""

    text: str
    at: str | None
    """None where that is not known."""
    state: str
    """A job's state or an attempt's outcome, for its colour; the text says it as well."""
    took_us: int | None = None
    """Since the step before, as far as that means something."""
    took: str = ""
    """What was done in that time: ``waiting``, ``running``."""
    reason: str | None = None
    """Why somebody did it, as he wrote."""


class Marked(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one attempt that are compared with those of others; they are named as in `plots.FIGURES`."""

    generation: int
    number: int
    wall_us: int | None
    cpu_us: int | None
    rss_peak_bytes: int | None
    allocated_bytes: int | None


def steps(job: JobDetailBody, records: Sequence[AuditBody] = ()) -> tuple[Step, ...]:
    """Its life so far, first to last.

    Args:
        job: the run.
        records: of the audit trail, as far as the reader may see them: they tell who opened a generation, when and why.
    """
    opened = [each for each in records if each.action in _OPENED]
    # The trail is read after the run: a generation that was opened in between is left to the next reading.
    known = {each.generation: each for each in opened if each.generation and each.generation <= job.generation}
    return tuple(_steps(job, known))


def cpu_us(usage: UsageBody | None) -> int | None:
    """CPU time of the executor itself, user and system."""
    if usage is None or usage.cpu_user_us is None or usage.cpu_system_us is None:
        return None
    return usage.cpu_user_us + usage.cpu_system_us


def marked(job: JobDetailBody) -> Marked | None:
    """What the latest measured attempt cost; None where none was."""
    for attempt in reversed(job.attempts):
        if (usage := attempt.usage) is not None:
            return Marked(
                generation=attempt.generation,
                number=attempt.number,
                wall_us=usage.wall_us,
                cpu_us=cpu_us(usage),
                rss_peak_bytes=usage.rss_peak_bytes,
                allocated_bytes=usage.allocated_bytes,
            )
    return None


def _steps(job: JobDetailBody, openings: Mapping[int, AuditBody]) -> Iterator[Step]:
    yield Step("Created", job.created_at, "pending")
    ready_at: str | None = job.created_at
    for generation in sorted({1, job.generation, *openings, *(attempt.generation for attempt in job.attempts)}):
        attempts = [attempt for attempt in job.attempts if attempt.generation == generation]
        if generation > 1:
            yield _opened(generation, openings.get(generation))
            ready_at = openings[generation].at if generation in openings else None
        for attempt in attempts:
            yield from _tried(job, attempt, ready_at)
            ready_at = attempt.ended_at
        if generation < job.generation:
            yield from _ended(attempts[-1:], openings.get(generation + 1))
    if job.running is not None and job.running.begun_at is not None:
        yield Step("Running now", job.running.begun_at, "running", _since(ready_at, job.running.begun_at), "waiting")
    if job.ended_at is not None:
        yield Step(_end(job.state, job.code), job.ended_at, job.state)
    elif job.due_at is not None:
        yield Step("Due", job.due_at, job.state)


def _opened(generation: int, record: AuditBody | None) -> Step:
    if record is None:
        return Step(f"Generation {generation} was opened", None, "pending")
    by = record.actor_display or record.actor
    return Step(f"{_OPENED[record.action]} by {by}", record.at, "pending", reason=record.reason)


def _tried(job: JobDetailBody, attempt: AttemptBody, ready_at: str | None) -> Iterator[Step]:
    name = _name(job, attempt)
    if attempt.begun_at is None:
        yield Step(f"{name} ended before it began", attempt.ended_at, attempt.outcome)
        return
    yield Step(f"{name} began", attempt.begun_at, "running", _since(ready_at, attempt.begun_at), "waiting")
    took = _since(attempt.begun_at, attempt.ended_at)
    yield Step(f"{name}: {texts.words(attempt.outcome)}", attempt.ended_at, attempt.outcome, took, "running")


def _ended(last: Sequence[AttemptBody], next_opening: AuditBody | None) -> Iterator[Step]:
    """How an earlier generation ended: as its last attempt left it, unless the trail knows that it was cancelled."""
    left = [_ENDED.get(attempt.outcome, "failed") for attempt in last]
    state = next_opening.before if next_opening is not None and next_opening.before else "".join(left)
    if [state] == left:
        yield Step(_end(state, last[0].code), last[0].ended_at, state)
    elif state:
        yield Step(state.capitalize(), None, state)


def _end(state: str, code: str | None) -> str:
    return f"{state.capitalize()}: {texts.words(code)}" if code else state.capitalize()


def _name(job: JobDetailBody, attempt: AttemptBody) -> str:
    if job.generation == 1:
        return f"Attempt {attempt.number}"
    return f"Generation {attempt.generation}, attempt {attempt.number}"


def _since(start: str | None, end: str) -> int | None:
    return None if start is None else max(texts.between(start, end), 0)
