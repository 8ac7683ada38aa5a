"""Accounts: every job is somewhere, everything comes to rest, nothing is left over, and costs are possible."""

import collections
import math
from collections.abc import Iterator

from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import BLACK_BOX_MAX_BYTES, ERROR_TEXT_MAX_BYTES
from runwick.contracts.stores import AttemptRecord
from runwick.contracts.usage import Usage
from tests.chaos.history import History, Mark


def every_job_is_counted_once(history: History) -> Iterator[str]:
    """Created is live plus ended; a generation that is over has a closing, one that goes on has none."""
    live = sum(not job.record.state.terminal for job in history.jobs)
    if history.live != live:
        yield f"the store counts {history.live} live jobs, there are {live}"
    for job in history.jobs:
        record = job.record
        over = record.generation if record.state.terminal else record.generation - 1
        found = [
            generation for generation in range(1, record.generation + 1) if (record.job_id, generation) in history.ends
        ]
        if found != list(range(1, over + 1)):
            yield f"job {id_text(record.job_id)} is {record.state.value} in {record.generation}, closed are {found}"
    for job_id in {closing.job_id for closing in history.closings} - set(history.by_id):
        yield f"job {id_text(job_id)} has an end but is not there"


def everything_comes_to_rest(history: History) -> Iterator[str]:
    """When the faults are over and workers have emptied the store, a job has ended or waits for a due time."""
    for job in history.jobs:
        record = job.record
        if not record.state.terminal and (record.due_at_ms is None or record.due_at_ms <= history.read_at_ms):
            yield f"job {id_text(record.job_id)} is {record.state.value} at the end, due at {record.due_at_ms}"


def nothing_is_left_over(history: History) -> Iterator[str]:
    """Descriptors, processes and files are as many as before."""
    for residue in history.residues:
        if residue.after > residue.before:
            yield f"{residue.what}: {residue.before} before, {residue.after} after"


def costs_are_possible(history: History) -> Iterator[str]:
    """No cost is negative, memory is more than nothing, and the runs of a process cost no more than the process."""
    attempts = {attempt.attempt_id: attempt for job in history.jobs for attempt in job.record.attempts}
    for attempt in attempts.values():
        if attempt.usage is not None and (wrong := _impossible(attempt.usage)) is not None:
            yield f"attempt {id_text(attempt.attempt_id)}: {wrong}"
    processes: dict[tuple[int, int], list[Mark]] = collections.defaultdict(list)
    for mark in history.marks:
        if mark.step == "begin":
            processes[mark.pid, mark.born].append(mark)
    for (pid, _), begins in processes.items():
        spent_us = 0
        for begin in sorted(begins, key=lambda mark: mark.at_ns):
            if spent_us > begin.cpu_us + 1_000:
                yield f"executor {pid}: its runs cost {spent_us} µs, itself {begin.cpu_us}"
                break
            spent_us += _cpu_us(attempts.get(begin.attempt_id))


def _impossible(usage: Usage) -> str | None:
    for name in usage.__struct_fields__:
        amount = getattr(usage, name)
        if isinstance(amount, int) and amount < 0:
            return f"{name} is {amount}"
    if 0 in (usage.rss_peak_bytes, usage.rss_end_bytes):
        return "it ran without memory"
    return None


def _cpu_us(attempt: AttemptRecord | None) -> int:
    return 0 if attempt is None or attempt.usage is None else attempt.usage.cpu_us or 0


def errors_are_storable(history: History) -> Iterator[str]:
    """Every text of an error or a black box is Unicode without NUL and within its bound."""
    for job in history.jobs:
        for attempt in job.record.attempts:
            for text, most in _texts(attempt):
                if (wrong := _unstorable(text, most)) is not None:
                    yield f"attempt {id_text(attempt.attempt_id)}: {wrong}"


def _texts(attempt: AttemptRecord) -> Iterator[tuple[str, float]]:
    if attempt.error is not None:
        yield from ((attempt.error.type, math.inf), (attempt.error.message, ERROR_TEXT_MAX_BYTES))
        yield attempt.error.text, ERROR_TEXT_MAX_BYTES
    if attempt.black_box is not None:
        yield from ((text, BLACK_BOX_MAX_BYTES) for text in (attempt.black_box.lines, attempt.black_box.stack))


def _unstorable(text: str, most: float) -> str | None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "a text is not Unicode"
    if "\0" in text:
        return "a text holds NUL"
    return f"a text has {size} bytes" if size > most else None
