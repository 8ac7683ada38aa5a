"""Acceptance: what a client was told about a dispatch is true."""

import collections
from collections.abc import Iterator

from runwick.contracts.identity import id_text
from tests.chaos.history import Call, History


def a_receipt_is_kept(history: History) -> Iterator[str]:
    """A receipt means that the job is found afterwards."""
    for call in history.dispatches:
        for job_id in _receipts(call):
            if job_id not in history.by_id:
                yield f"job {id_text(job_id)} was confirmed and is lost"


def what_failed_was_not_written(history: History) -> Iterator[str]:
    """Where it was said that nothing was written, nothing is there, nor ever ran."""
    ran = {mark.job_id for mark in history.marks}
    hopes = {wanted.job_id for call in history.dispatches if call.ended != "fail" for wanted in call.asked.jobs}
    for call in history.dispatches:
        for wanted in call.asked.jobs if call.ended == "fail" else ():
            if wanted.job_id not in hopes and (wanted.job_id in history.by_id or wanted.job_id in ran):
                yield f"job {id_text(wanted.job_id)} is there although its dispatch failed"


def an_unknown_end_is_settled_by_sending_again(history: History) -> Iterator[str]:
    """The same operation sent again ends in the one job that it named from the beginning."""
    for call in history.dispatches:
        expected = [wanted.job_id for wanted in call.asked.jobs]
        if call.ended == "ok" and sorted(_receipts(call)) != sorted(expected):
            yield f"call {call.asked.call} was answered with other jobs than it asked for"


def an_operation_is_applied_once(history: History) -> Iterator[str]:
    """One operation, at most one job."""
    counts = collections.Counter(job.operation_id for job in history.jobs)
    for operation_id, count in counts.items():
        if count > 1:
            yield f"operation {id_text(operation_id)} made {count} jobs"


def a_batch_is_whole_or_not_there(history: History) -> Iterator[str]:
    """All items of a batch or none; receipts in the order of the items."""
    for call in history.dispatches:
        expected = [wanted.job_id for wanted in call.asked.jobs]
        found = sum(job_id in history.by_id for job_id in expected)
        if found not in (0, len(expected)):
            yield f"call {call.asked.call}: {found} of {len(expected)} jobs of a batch are there"
        if call.ended == "ok" and list(_receipts(call)) != expected:
            yield f"call {call.asked.call}: receipts do not stand in the order of the items"


def nothing_came_from_nowhere(history: History) -> Iterator[str]:
    """Every job was asked for, and everything that ran is a job."""
    asked = {(wanted.operation_id, wanted.job_id) for call in history.dispatches for wanted in call.asked.jobs}
    for job in history.jobs:
        if (job.operation_id, job.record.job_id) not in asked:
            yield f"job {id_text(job.record.job_id)} was never asked for"
    for job_id in {mark.job_id for mark in history.marks} - set(history.by_id):
        yield f"job {id_text(job_id)} ran and is not in the store"


def _receipts(call: Call) -> list[bytes]:
    return list(call.answer.receipts) if call.answer is not None and call.ended == "ok" else []
