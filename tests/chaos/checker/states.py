"""States, attempts and the events that tell of them."""

import collections
import itertools
from collections.abc import Iterator
from typing import Final

from runwick.contracts.history import EventKind, JobEvent
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.states import TERMINAL_STATES
from tests.chaos.history import History, StoredJob

_OPENS_FROM: Final = {"retry": ("failed", "cancelled"), "rerun": ("succeeded",)}
_ORDER: Final = {
    EventKind.DISPATCHED: 0,
    EventKind.ATTEMPT_ENDED: 2,
    EventKind.CONTROLLED: 3,
    EventKind.JOB_ENDED: 4,
}
"""Of the events of one commit, which stand in the store's own order."""


def only_legal_moves(history: History) -> Iterator[str]:
    """Nothing happens in a generation that has ended, and only a retry or a rerun opens the next."""
    by_job: dict[bytes, list[JobEvent]] = collections.defaultdict(list)
    for event in history.events:
        by_job[event.job_id].append(event)
    for job in history.jobs:
        life = _Life()
        for event in _in_order(by_job[job.record.job_id]):
            if (wrong := life.move(event)) is not None:
                yield f"job {id_text(job.record.job_id)}: {wrong}"
        record = job.record
        ends = record.state.value if record.state.terminal else None
        if (life.generation, life.ended) != (record.generation, ends):
            yield (
                f"job {id_text(record.job_id)} is {record.state.value} in generation {record.generation}, its events "
                f"end with {life.ended or 'an open generation'} in {life.generation}"
            )


def _in_order(events: list[JobEvent]) -> Iterator[JobEvent]:
    """Events of one job; those of one moment in the order in which they make sense."""
    for _, group in itertools.groupby(events, lambda event: event.at_ms):
        yield from sorted(group, key=lambda event: (event.generation, _rank(event)))


def _rank(event: JobEvent) -> int:
    return 1 if event.what is EventKind.CONTROLLED and event.state in _OPENS_FROM else _ORDER[event.what]


class _Life:
    """Where one job stands, event by event."""

    def __init__(self) -> None:
        self.generation = 0
        self.ended: str | None = "nothing"

    def move(self, event: JobEvent) -> str | None:
        """Take one event in; answers what is wrong with it."""
        here = f"{event.what.value} ({event.state}) in generation {event.generation}"
        if event.what is EventKind.DISPATCHED:
            opens = self.generation == 0
            self.generation, self.ended = 1, None
            return None if opens else f"{here} after it was there"
        if event.what is EventKind.CONTROLLED and event.state in _OPENS_FROM:
            legal = event.generation == self.generation + 1 and self.ended in _OPENS_FROM[event.state]
            wrong = None if legal else f"{here} from {self.ended} in generation {self.generation}"
            self.generation, self.ended = event.generation, None
            return wrong
        if event.generation != self.generation or self.ended is not None:
            return f"{here} although generation {self.generation} has ended as {self.ended}"
        if event.what is EventKind.JOB_ENDED:
            self.ended = event.state
            if event.state not in {state.value for state in TERMINAL_STATES}:
                return f"{here} is no end"
        return None


def one_end_per_generation(history: History) -> Iterator[str]:
    """A generation ends once, and as its last attempt did, unless nothing ran or somebody cancelled it."""
    counts = collections.Counter((closing.job_id, closing.generation) for closing in history.closings)
    for (job_id, generation), count in counts.items():
        if count > 1:
            yield f"job {id_text(job_id)}: generation {generation} ended {count} times"
    for job in history.jobs:
        for generation in range(1, job.record.generation + 1):
            if (wrong := _end(history, job, generation)) is not None:
                yield f"job {id_text(job.record.job_id)}, generation {generation}: {wrong}"


def _end(history: History, job: StoredJob, generation: int) -> str | None:
    outcomes = [attempt.outcome for attempt in history.attempts(job, generation)]
    end = history.ends.get((job.record.job_id, generation))
    if end is None:
        live = generation == job.record.generation and not job.record.state.terminal
        if not live:
            return "it ended without a trace"
        return f"it goes on after {outcomes}" if OutcomeKind.SUCCEEDED.value in outcomes else None
    if (end.state == "succeeded") != (outcomes[-1:] == ["succeeded"]) or outcomes[:-1].count("succeeded"):
        return f"it ended as {end.state} after {outcomes}"
    return None


def attempts_are_numbered_without_gap(history: History) -> Iterator[str]:
    """Attempts of a generation are 1, 2, 3…; each ends once."""
    for job in history.jobs:
        for generation in range(1, job.record.generation + 1):
            numbers = [attempt.number for attempt in history.attempts(job, generation)]
            if numbers != list(range(1, len(numbers) + 1)):
                yield f"job {id_text(job.record.job_id)}: attempts of generation {generation} are {numbers}"
    counts = collections.Counter(attempt.attempt_id for job in history.jobs for attempt in job.record.attempts)
    for attempt_id, count in counts.items():
        if count > 1:
            yield f"attempt {id_text(attempt_id)} ended {count} times"


def events_tell_every_row_once(history: History) -> Iterator[str]:
    """The events are the rows, each once, and whoever follows them sees the same in the same order."""
    told = collections.Counter(map(_essence, history.events))
    rows = collections.Counter(_rows(history))
    for essence in told - rows:
        yield f"an event tells what is not there: {essence}"
    for essence in rows - told:
        yield f"no event tells of {essence}"
    if [event.cursor for event in history.followed] != [event.cursor for event in history.events]:
        missed = {event.cursor for event in history.events} - {event.cursor for event in history.followed}
        yield f"who followed saw {len(history.followed)} of {len(history.events)} events, not {sorted(missed)[:5]}"


def _essence(event: JobEvent) -> tuple[object, ...]:
    if event.what is EventKind.ATTEMPT_ENDED:
        return "attempt", event.attempt_id, event.generation, event.number, event.state, event.code
    if event.what is EventKind.JOB_ENDED:
        return "end", event.job_id, event.generation, event.state, event.code
    if event.what is EventKind.CONTROLLED:
        return "control", event.job_id, event.generation, event.state, event.command_id
    return "job", event.job_id


def _rows(history: History) -> Iterator[tuple[object, ...]]:
    for job in history.jobs:
        yield "job", job.record.job_id
        for attempt in job.record.attempts:
            yield "attempt", attempt.attempt_id, attempt.generation, attempt.number, attempt.outcome, attempt.code
    for closing in history.closings:
        yield "end", closing.job_id, closing.generation, closing.state, closing.code
    for record in history.audit:
        if record.job_id is not None:
            yield "control", record.job_id, record.generation, record.action, record.command_id
