"""Acceptance: what a client was told about a dispatch is true."""

import collections
from collections.abc import Iterator

from runwick.contracts.dispatching import DuplicateMatch
from runwick.contracts.identity import id_text
from tests.chaos.history import Call, Given, History, Wanted


def a_receipt_is_kept(history: History) -> Iterator[str]:
    """A receipt means that the job is found afterwards."""
    for call in history.dispatches:
        for _, given in confirmed(call):
            if given.job_id is not None and given.job_id not in history.by_id:
                yield f"job {id_text(given.job_id)} was confirmed and is lost"


def what_failed_was_not_written(history: History) -> Iterator[str]:
    """Where it was said that nothing was written, nothing is there, nor ever ran."""
    ran = {mark.job_id for mark in history.marks}
    hopes = {wanted.job_id for call in history.dispatches for wanted in _hopes(call)}
    for call in history.dispatches:
        for wanted in call.asked.jobs:
            if wanted.job_id not in hopes and (wanted.job_id in history.by_id or wanted.job_id in ran):
                yield f"job {id_text(wanted.job_id)} is there although its dispatch failed"


def _hopes(call: Call) -> list[Wanted]:
    """Which of its jobs may be there."""
    if call.ended == "ok":
        return [wanted for wanted, given in confirmed(call) if given.job_id is not None]
    return [] if call.ended == "fail" else list(call.asked.jobs)


def an_unknown_end_is_settled_by_sending_again(history: History) -> Iterator[str]:
    """The same operation sent again ends in the one job that it was first answered with: the one that it named from the
    beginning, or the one that a key of its had found."""
    first: dict[bytes, Given] = {}
    for call in history.dispatches:
        for wanted, given in confirmed(call):
            if given.job_id is None:
                continue
            before = first.setdefault(wanted.operation_id, given)
            if given != before:
                yield f"operation {id_text(wanted.operation_id)} was answered in two ways"
            if given.match is DuplicateMatch.NONE and given.job_id != wanted.job_id:
                yield f"call {call.asked.call} was answered with another job than it asked for"
            if given.match is not DuplicateMatch.NONE and wanted.job_id in history.by_id:
                yield f"operation {id_text(wanted.operation_id)} found a job and made one"


def an_operation_is_applied_once(history: History) -> Iterator[str]:
    """One operation, at most one job."""
    counts = collections.Counter(job.operation_id for job in history.jobs)
    for operation_id, count in counts.items():
        if count > 1:
            yield f"operation {id_text(operation_id)} made {count} jobs"


def a_batch_is_whole_or_not_there(history: History) -> Iterator[str]:
    """All items of a batch or none, but for those that keys lead elsewhere; answers in the order of the items."""
    for call in history.dispatches:
        plain = [wanted.job_id for wanted in call.asked.jobs if not wanted.keyed]
        found = sum(job_id in history.by_id for job_id in plain)
        if found not in (0, len(plain)):
            yield f"call {call.asked.call}: {found} of {len(plain)} jobs of a batch are there"
        if call.ended != "ok":
            continue
        told = [given.job_id for wanted, given in confirmed(call) if not wanted.keyed]
        if len(call.asked.jobs) != len(list(confirmed(call))) or told != plain:
            yield f"call {call.asked.call}: receipts do not stand in the order of the items"
        for wanted, given in confirmed(call):
            if given.job_id == wanted.job_id and wanted.job_id not in history.by_id:
                yield f"call {call.asked.call}: an item that was confirmed is not there"


def nothing_came_from_nowhere(history: History) -> Iterator[str]:
    """Every job was asked for, and everything that ran is a job."""
    asked = {(wanted.operation_id, wanted.job_id) for call in history.dispatches for wanted in call.asked.jobs}
    for job in history.jobs:
        if (job.operation_id, job.record.job_id) not in asked:
            yield f"job {id_text(job.record.job_id)} was never asked for"
    for job_id in {mark.job_id for mark in history.marks} - set(history.by_id):
        yield f"job {id_text(job_id)} ran and is not in the store"


def confirmed(call: Call) -> Iterator[tuple[Wanted, Given]]:
    """What was asked with what was answered, where it was."""
    if call.answer is not None and call.ended == "ok":
        yield from zip(call.asked.jobs, call.answer.given, strict=False)
