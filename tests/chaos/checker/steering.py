"""What operators do to queues and capacities: a pause holds, and what was done stands in the audit trail."""

import collections
from collections.abc import Iterator
from typing import Final

from runwick.contracts.controls import SteerAction, SteerReply
from runwick.contracts.history import AuditRecord
from runwick.contracts.identity import id_text
from tests.chaos.history import History

_IN_FLIGHT_MS: Final = 100
"""A claim that was on its way when the pause was committed may still come through."""


def a_pause_holds(history: History) -> Iterator[str]:
    """Nothing is claimed from a queue while it is paused."""
    pauses = _pauses(history)
    for job in history.jobs:
        for attempt in job.record.attempts:
            claimed_ms = history.claimed_at_ms.get(attempt.attempt_id)
            for since_ms, until_ms in pauses.get(job.record.lane.queue, ()) if claimed_ms is not None else ():
                if since_ms + _IN_FLIGHT_MS < (claimed_ms or 0) < until_ms:
                    after_ms = (claimed_ms or 0) - since_ms
                    yield f"job {id_text(job.record.job_id)} was claimed {after_ms} ms after its queue was paused"


def _pauses(history: History) -> dict[str, list[tuple[int, int]]]:
    """From when to when each queue was paused, by its name."""
    pauses: dict[str, list[tuple[int, int]]] = collections.defaultdict(list)
    since_ms: dict[str, int] = {}
    for record in history.audit:
        queue = (record.target or "").removeprefix("queue ")
        if record.action == SteerAction.PAUSE.value:
            since_ms[queue] = record.at_ms
        elif record.action == SteerAction.RESUME.value and queue in since_ms:
            pauses[queue].append((since_ms.pop(queue), record.at_ms))
    for queue, at_ms in since_ms.items():
        pauses[queue].append((at_ms, history.read_at_ms))
    return pauses


def a_steering_stands_in_the_audit(history: History) -> Iterator[str]:
    """A command changes something once, with its audit row, and answers the same when it is sent again; one that was
    refused changed nothing; each change goes on from the one before."""
    rows = {record.command_id: record for record in history.audit if record.target is not None}
    first: dict[bytes | None, SteerReply] = {}
    refused: dict[bytes | None, bool] = {}
    for call in history.steerings:
        reply = call.answer.steered if call.answer is not None else None
        refused[call.asked.command_id] = refused.get(call.asked.command_id, True) and (
            call.ended == "fail" or (reply is not None and reply.code is not None)
        )
        if reply is None or reply.code is not None:
            continue
        before = first.setdefault(call.asked.command_id, reply)
        row = rows.get(call.asked.command_id)
        if (reply.before, reply.after, reply.revision) != (before.before, before.after, before.revision):
            yield f"steering {id_text(call.asked.command_id or b'')} was answered in two ways"
        if row is None or (row.before, row.after, row.target) != (reply.before, reply.after, call.asked.queue_or_scope):
            yield f"steering {id_text(call.asked.command_id or b'')} of {call.asked.queue_or_scope} is not in the audit"
    for command_id, was_refused in refused.items():
        if was_refused and command_id in rows:
            yield f"steering {id_text(command_id or b'')} was refused and audited"
    yield from _chains(list(rows.values()))


def _chains(records: list[AuditRecord]) -> Iterator[str]:
    """A queue has two things to be steered: whether it is open, and its capacity."""
    last: dict[tuple[str | None, bool], str | None] = {}
    for record in records:
        what = record.target, record.action == SteerAction.SET_CAPACITY.value
        if record.before != last.get(what, record.before):
            yield f"{record.target} was changed from {record.before}, it was {last[what]}"
        last[what] = record.after
