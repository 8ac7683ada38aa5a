"""What operators do: cancels hold, every change is one revision, and what was done stands in the audit trail."""

import collections
from collections.abc import Iterator
from typing import Final

from runwick.contracts.attempts import PAYLOAD_INLINE_MAX_BYTES
from runwick.contracts.controls import ControlAction, ControlAnswer, JobTarget
from runwick.contracts.history import AuditRecord
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.states import LEASED_STATES, JobState
from tests.chaos.history import History, StoredJob

_OPENS: Final = (ControlAction.RETRY.value, ControlAction.RERUN.value)
_CHANGES: Final = (ControlAction.CANCEL.value, *_OPENS)


def a_confirmed_cancel_holds(history: History) -> Iterator[str]:
    """A waiting job that is cancelled never begins again; one that runs is never tried again, whatever happened to its
    worker. What stands against a cancel is a success, or an end that the handler chose."""
    for record in history.audit:
        job = history.by_id.get(record.job_id or b"")
        if record.action != ControlAction.CANCEL.value or job is None or record.generation is None:
            continue
        for wrong in _after_the_cancel(history, job, record, record.generation):
            yield f"job {id_text(job.record.job_id)}, generation {record.generation}: {wrong}"


def _after_the_cancel(history: History, job: StoredJob, cancel: AuditRecord, generation: int) -> Iterator[str]:
    waited = cancel.before in (JobState.PENDING.value, JobState.RETRYING.value)
    attempts = history.attempts(job, generation)
    later = [attempt for attempt in attempts if attempt.ended_at_ms > cancel.at_ms]
    claims = [history.claimed_at_ms.get(attempt.attempt_id, 0) for attempt in attempts]
    if any(claimed_ms > cancel.at_ms for claimed_ms in claims) or len(later) > (0 if waited else 1):
        yield f"it was tried after it had been cancelled while {cancel.before}"
    end = history.ends.get((job.record.job_id, generation))
    if end is None:
        if job.record.state in (JobState.PENDING, JobState.RETRYING):
            yield f"it was cancelled while {cancel.before} and waits"
    elif (
        end.state == JobState.FAILED.value and attempts[-1:] and attempts[-1].outcome != OutcomeKind.FAILED_PERMANENTLY
    ):
        yield f"it was cancelled while {cancel.before} and failed as {end.code}"
    elif waited and end.state != JobState.CANCELLED.value:
        yield f"it was cancelled while {cancel.before} and ended as {end.state}"
    if waited:
        for run in history.runs.values():
            first = run[0]
            mine = (first.job_id, first.generation) == (job.record.job_id, generation)
            if mine and first.at_ms > cancel.at_ms + 1:
                yield f"a handler began {first.at_ms - cancel.at_ms} ms after the cancel"


def each_change_is_one_revision(history: History) -> Iterator[str]:
    """Creation is revision 1 and every change adds one: a claim, its end, a control. What a control names, it saw."""
    for job in history.jobs:
        if (wrong := _revisions(history, job)) is not None:
            yield f"job {id_text(job.record.job_id)}: {wrong}"
    for target, action, answer in _answered(history):
        seen = (target.generation + (action in _OPENS), target.revision + (action in _CHANGES))
        if answer.code is None and (answer.generation, answer.revision) != seen:
            yield (
                f"job {id_text(target.job_id)}: {action} of {target.generation}, revision {target.revision} answered "
                f"{answer.generation}, revision {answer.revision}"
            )


def _revisions(history: History, job: StoredJob) -> str | None:
    """A claim and its end are two changes, and so are a claim and its return. A payload that is not claimed with its
    job is begun by an act of its own, and an attempt that nobody had begun is recovered: neither leaves a trace, so
    such a job may have had more changes."""
    record = job.record
    alone = int(record.state in LEASED_STATES)
    for generation in range(1, record.generation + 1):
        alone += sum(one.action in _CHANGES for one in history.audited.get((record.job_id, generation), ()))
        end = history.ends.get((record.job_id, generation))
        alone += end is not None and end.code == "expired"
    claims = len(record.attempts) + history.given_back.get(record.job_id, 0)
    least = 1 + alone + 2 * claims
    if record.revision < least or (record.revision > least and job.payload_bytes <= PAYLOAD_INLINE_MAX_BYTES):
        return f"revision {record.revision} after {claims} claims and {alone} other changes"
    return None


def a_command_is_applied_once(history: History) -> Iterator[str]:
    """One command, one audit row for each job; sent again, it answers what it answered."""
    counts = collections.Counter((record.command_id, record.job_id) for record in history.audit if record.command_id)
    for (command_id, job_id), count in counts.items():
        if count > 1:
            yield f"command {id_text(command_id or b'')} did {count} things to job {id_text(job_id or b'')}"
    first: dict[bytes | None, list[ControlAnswer]] = {}
    for call in history.controls:
        if call.answer is None or call.ended != "ok":
            continue
        answers = list(call.answer.answers)
        changed = any(answer.code is None for answer in answers)
        before = first.get(call.asked.command_id)
        if before is not None and (answers != before or not call.answer.replayed):
            yield f"command {id_text(call.asked.command_id or b'')} was answered in two ways"
        if changed:
            first[call.asked.command_id] = answers


def a_change_and_its_audit_stand_together(history: History) -> Iterator[str]:
    """Whatever an operator changed has its audit row, and every audit row its change."""
    rows = collections.Counter((record.command_id, record.job_id) for record in history.audit)
    for call in history.controls:
        for answer in call.answer.answers if call.answer is not None and call.ended == "ok" else ():
            if answer.code is None and not rows[call.asked.command_id, answer.job_id]:
                yield f"job {id_text(answer.job_id)} was changed by a command that nobody audited"
    for job in history.jobs:
        for generation in range(1, job.record.generation + 1):
            audited = [one.action for one in history.audited.get((job.record.job_id, generation), ())]
            if sum(action in _OPENS for action in audited) != (generation > 1):
                yield f"job {id_text(job.record.job_id)}: generation {generation} was opened by {audited}"
            if _is_cancelled(history, job, generation) != (ControlAction.CANCEL.value in audited):
                yield f"job {id_text(job.record.job_id)}: a cancel in generation {generation}, audited {audited}"


def _is_cancelled(history: History, job: StoredJob, generation: int) -> bool:
    """Whether the rows say that somebody cancelled it."""
    if generation == job.record.generation:
        return job.record.cancel_requested_at_ms is not None
    end = history.ends.get((job.record.job_id, generation))
    return end is not None and end.cancel_requested_at_ms is not None


def a_refused_control_has_no_effect(history: History) -> Iterator[str]:
    """A target that is refused, or a command that failed, changed nothing. One that met an active key of another job is
    judged anew when it is sent again."""
    rows = {(record.command_id, record.job_id) for record in history.audit}
    rows -= {
        (call.asked.command_id, answer.job_id)
        for call in history.controls
        for answer in (call.answer.answers if call.answer is not None else ())
        if answer.code == "uniqueness_conflict"
    }
    hopes = {call.asked.command_id for call in history.controls if call.ended != "fail"}
    for call in history.controls:
        if call.ended == "fail" and call.asked.command_id not in hopes:
            refused = [target.job_id for target in call.asked.targets]
        else:
            answers = call.answer.answers if call.answer is not None and call.ended == "ok" else ()
            refused = [answer.job_id for answer in answers if answer.code is not None]
        for job_id in refused:
            if (call.asked.command_id, job_id) in rows:
                yield f"job {id_text(job_id)} was changed by a command that was refused"


def _answered(history: History) -> Iterator[tuple[JobTarget, str, ControlAnswer]]:
    for call in history.controls:
        if call.answer is not None and call.ended == "ok":
            for target, answer in zip(call.asked.targets, call.answer.answers, strict=True):
                yield target, call.asked.act, answer
