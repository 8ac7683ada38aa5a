"""Leases: one owner at a time, nobody else's writes count, and no two runs of a job at once."""

import collections
import itertools
from collections.abc import Iterator
from typing import Final

from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.stores import AttemptRecord
from tests.chaos.history import History

_CLOCK_MS: Final = 2
"""Between two readings of the same clock by two processes, in whole milliseconds each."""


def one_lease_at_a_time(history: History) -> Iterator[str]:
    """An attempt is claimed when the one before has ended, and none is taken from its owner while its lease holds."""
    for job in history.jobs:
        ended_ms = 0
        for attempt in job.record.attempts:
            claimed_ms = history.claimed_at_ms.get(attempt.attempt_id)
            if claimed_ms is None:
                continue
            name = f"job {id_text(job.record.job_id)}, attempt {attempt.generation}.{attempt.number}"
            if claimed_ms < ended_ms:
                yield f"{name}: claimed {ended_ms - claimed_ms} ms before the last one had ended"
            ended_ms = attempt.ended_at_ms
            if ended_ms < claimed_ms:
                yield f"{name}: ended before it was claimed"
            ran_out = attempt.outcome == OutcomeKind.ABANDONED and attempt.code == "lease_lost"
            if ran_out and ended_ms < claimed_ms + history.lease_ms:
                yield f"{name}: abandoned {ended_ms - claimed_ms} ms after its claim, of a lease of {history.lease_ms}"


def only_the_owner_writes(history: History) -> Iterator[str]:
    """An attempt's row, its begun mark and its success come from the run that held the claim."""
    counts = collections.Counter(attempt.attempt_id for job in history.jobs for attempt in job.record.attempts)
    for job in history.jobs:
        for attempt in job.record.attempts:
            name = f"job {id_text(job.record.job_id)}, attempt {attempt.generation}.{attempt.number}"
            claimed_ms = history.claimed_at_ms.get(attempt.attempt_id)
            if counts[attempt.attempt_id] > 1:
                yield f"{name}: the same owner wrote twice"
            if attempt.begun_at_ms is not None and claimed_ms is not None:
                after_ms = attempt.begun_at_ms - claimed_ms
                if not -_CLOCK_MS <= after_ms <= attempt.ended_at_ms - claimed_ms + _CLOCK_MS:
                    yield f"{name}: its begun mark lies outside of it, {after_ms} ms after its claim"
            steps = [mark.step for mark in history.runs.get(attempt.attempt_id, ())]
            if attempt.outcome == OutcomeKind.SUCCEEDED and "end" not in steps:
                yield f"{name}: it succeeded, but its handler never came to its end"


def a_lost_attempt_is_silent(history: History) -> Iterator[str]:
    """A worker that declared an attempt lost wrote nothing about it."""
    for job in history.jobs:
        for attempt in job.record.attempts:
            if attempt.attempt_id in history.declared_lost and not _by_recovery(attempt):
                yield f"attempt {id_text(attempt.attempt_id)} was declared lost and ended as {attempt.outcome}"


def _by_recovery(attempt: AttemptRecord) -> bool:
    """Whether recovery wrote of it, which knows of no usage."""
    return attempt.outcome in (OutcomeKind.ABANDONED, OutcomeKind.CANCELLED) and attempt.usage is None


def runs_do_not_overlap(history: History) -> Iterator[str]:
    """Of one job no two runs are alive at once, and nothing of a run outlives what was written of it. Of a run that was
    killed that goes for all that it had started; one that came to its end answers for that itself."""
    rows = {attempt.attempt_id: attempt for job in history.jobs for attempt in job.record.attempts}
    by_job: dict[bytes, list[tuple[int, int, bytes]]] = collections.defaultdict(list)
    for attempt_id, run in history.runs.items():
        row = rows.get(attempt_id)
        all_of_it = row is None or row.death is not None or _by_recovery(row)
        marks = [mark for mark in run if all_of_it or mark.step != "left"]
        by_job[run[0].job_id].append((marks[0].at_ns, marks[-1].at_ns, attempt_id))
        if row is not None and (late_ms := marks[-1].at_ms - row.ended_at_ms) > _CLOCK_MS:
            yield f"attempt {id_text(attempt_id)} was alive {late_ms} ms after it had been written off"
    for job_id, spans in by_job.items():
        for (_, ended_ns, earlier), (begun_ns, _, later) in itertools.pairwise(sorted(spans)):
            if begun_ns < ended_ns:
                yield f"job {id_text(job_id)}: {id_text(later)} began before {id_text(earlier)} had ended"
