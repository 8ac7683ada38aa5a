"""Bugs to plant: each is one that a store, a policy or a worker could really have, and breaks the invariant it names.

Some are planted into the memory store or a policy before a play; the others change the sound history of one. Those of
limits and keys stand in `tests.chaos.limit_plants`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from runwick.contracts.controls import ControlAnswer
from runwick.contracts.dispatching import Receipt, ReceiptDisposition
from runwick.contracts.errors import StoreError
from runwick.contracts.outcomes import Answer, ErrorDetail, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.policy import recover as recovery
from runwick.policy import retries
from runwick.stores import controls
from runwick.stores.memory import claim, control, dispatch, ending, history, lease, recover, release, settle
from runwick.stores.memory.rows import JobRow
from runwick.stores.memory.tables import Tables
from tests.chaos.history import Given, History, Residue
from tests.chaos.rehearsal import Rehearsal

Patch = pytest.MonkeyPatch


class Plant(NamedTuple):
    breaks: str
    """The invariant."""
    into: Callable[[Patch], None]


class Change(NamedTuple):
    breaks: str
    of: Callable[[History], History]


def _recovery_drops_the_cancel(patch: Patch) -> None:
    patch.setattr(recovery, "_IF_CANCELLED", None)


def _settle_ignores_the_cancel(patch: Patch) -> None:
    patch.setattr(ending, "_under_a_cancel", lambda row, settlement: settlement)


def _release_forgets_the_cancel(patch: Patch) -> None:
    give_back = release._give_back

    def forgetful(tables: Tables, row: JobRow, now_ms: int) -> Answer:
        asked_at_ms, row.cancel_requested_at_ms = row.cancel_requested_at_ms, None
        answer = give_back(tables, row, now_ms)
        row.cancel_requested_at_ms = asked_at_ms
        return answer

    patch.setattr(release, "_give_back", forgetful)


def _release_keeps_the_number(patch: Patch) -> None:
    give_back = release._give_back

    def keeping(tables: Tables, row: JobRow, now_ms: int) -> Answer:
        row.attempts += 1
        return give_back(tables, row, now_ms)

    patch.setattr(release, "_give_back", keeping)


def _opened_keeping(patch: Patch, *names: str) -> None:
    open_generation = control._open

    def keeping(tables: Tables, row: JobRow, now_ms: int) -> None:
        kept = {name: getattr(row, name) for name in names}
        open_generation(tables, row, now_ms)
        for name, value in kept.items():
            setattr(row, name, value)

    patch.setattr(control, "_open", keeping)


def _retry_keeps_executions(patch: Patch) -> None:
    _opened_keeping(patch, "executions")


def _crashes_count_across_generations(patch: Patch) -> None:
    _opened_keeping(patch, "crashes")


def _a_wait_is_two_revisions(patch: Patch) -> None:
    _a_wait_adds(patch, 1)


def _a_wait_is_three_revisions(patch: Patch) -> None:
    """As many as if another claim had been given back."""
    _a_wait_adds(patch, 2)


def _a_wait_adds(patch: Patch, revisions: int) -> None:
    wait = ending._wait

    def waiting(tables: Tables, row: JobRow, settlement: Settlement, now_ms: int) -> None:
        row.revision += revisions
        wait(tables, row, settlement, now_ms)

    patch.setattr(ending, "_wait", waiting)


def _a_dispatch_sent_again_is_applied_again(patch: Patch) -> None:
    apply = dispatch._dispatch

    def forgetful(tables: Tables, commands: Sequence[Any], *rest: Any) -> Any:
        for command in commands:
            if command.active_key is None and command.window_key is None:
                tables.jobs_by_id.pop(command.job_id, None)
        return apply(tables, commands, *rest)

    patch.setattr(dispatch, "_dispatch", forgetful)


def _a_control_sent_again_is_judged_again(patch: Patch) -> None:
    judge = control._control

    def forgetful(tables: Tables, command: Any, now_ms: int) -> Any:
        tables.commands.clear()
        return judge(tables, command, now_ms)

    patch.setattr(control, "_control", forgetful)


def _the_audit_is_a_commit_of_its_own(patch: Patch) -> None:
    """And the process dies between the two now and then."""
    audit, count = control._audit, iter(range(1 << 30))

    def dying(*details: Any) -> None:
        if next(count) % 5:
            audit(*details)

    patch.setattr(control, "_audit", dying)


def _a_delay_is_drawn_again(patch: Patch) -> None:
    """When a settlement is sent twice."""
    unowned = settle._unowned

    def drawing(tables: Tables, settlement: Settlement) -> Answer:
        answer = unowned(tables, settlement)
        row = tables.rows[settlement.attempt.job]
        if answer is Answer.DONE and row.waits and row.history[-1].delay_ms is not None:
            tables.leave(row)
            row.due_at_ms -= 7
            tables.wait(row, row.state)
        return answer

    patch.setattr(settle, "_unowned", drawing)


def _delays_are_drawn_from_nothing_up(patch: Patch) -> None:
    patch.setattr(retries, "_half_random_ms", lambda nominal_ms, dice: 1 + round((nominal_ms - 1) * dice.fraction()))


def _a_delay_is_not_waited_for(patch: Patch) -> None:
    wait = ending._wait

    def hasty(tables: Tables, row: JobRow, settlement: Settlement, now_ms: int) -> None:
        wait(tables, row, msgspec.structs.replace(settlement, delay_ms=None), now_ms)

    patch.setattr(ending, "_wait", hasty)


def _a_wait_does_not_push_the_expiry(patch: Patch) -> None:
    wait = ending._wait

    def wait_and_expire(tables: Tables, row: JobRow, settlement: Settlement, now_ms: int) -> None:
        expires_at_ms = row.expires_at_ms
        wait(tables, row, settlement, now_ms)
        row.expires_at_ms = expires_at_ms

    patch.setattr(ending, "_wait", wait_and_expire)


def _a_cursor_runs_ahead(patch: Patch) -> None:
    """As one that goes by positions skips what commits late."""
    page = history._page

    def hasty(entries: Any, application: str, start: int, limit: int) -> Any:
        found, cursor, more = page(entries, application, start, limit)
        return (found, str(int(cursor) + 1), more) if more and limit < 10 else (found, cursor, more)

    patch.setattr(history, "_page", hasty)


def _the_token_is_not_asked_for(patch: Patch) -> None:
    def held(tables: Tables, attempt: Any) -> JobRow | None:
        row = tables.rows.get(attempt.job)
        return row if row is not None and row.lease is not None else None

    patch.setattr(Tables, "held", held)


def _marks_count_after_the_loss(patch: Patch) -> None:
    def valid(tables: Tables, item: Any, now_ms: int) -> Any:
        row = tables.rows.get(item.job)
        return None if row is None else row.lease

    patch.setattr(lease, "_valid", valid)


def _a_batch_loses_its_last_job(patch: Patch) -> None:
    apply = dispatch._dispatch

    def losing(tables: Tables, commands: Sequence[Any], *rest: Any) -> Any:
        return [*apply(tables, commands[:-1], *rest), _receipt(commands[-1])]

    patch.setattr(dispatch, "_dispatch", losing)


def _receipt(command: Any) -> Receipt:
    return Receipt(command.job_id, command.operation_id, ReceiptDisposition.CREATED, dispatch.PROFILE)


def _a_refusal_comes_after_the_write(patch: Patch) -> None:
    apply, check = dispatch._dispatch, dispatch._check

    def late(tables: Tables, commands: Sequence[Any], *rest: Any) -> Any:
        refusal = None
        try:
            check(tables, commands, rest[0])
        except StoreError as error:
            refusal = error
        with pytest.MonkeyPatch.context() as unchecked:
            unchecked.setattr(dispatch, "_check", lambda *_: None)
            receipts = apply(tables, commands, *rest)
        if refusal is not None:
            raise refusal
        return receipts

    patch.setattr(dispatch, "_dispatch", late)


def _controls_ignore_the_revision(patch: Patch) -> None:
    refusal = controls.refusal

    def lax(action: Any, target: Any, standing: Any) -> str | None:
        return refusal(action, msgspec.structs.replace(target, revision=standing.revision), standing)

    patch.setattr(control, "refusal", lax)


def _a_refused_control_is_audited(patch: Patch) -> None:
    answer = control._answer

    def lax(tables: Tables, command: Any, target: Any, now_ms: int) -> ControlAnswer:
        answered = answer(tables, command, target, now_ms)
        row = tables.find(command.application, target.job_id)
        if answered.code is not None and row is not None:
            control._audit(tables, command, row, row.state, now_ms)
        return answered

    patch.setattr(control, "_answer", lax)


def _a_cancel_counts_after_the_end(patch: Patch) -> None:
    """A finished job is cancelled once more."""
    refusal = controls.refusal

    def lax(action: Any, target: Any, standing: Any) -> str | None:
        code = refusal(action, target, standing)
        return None if code == "invalid_state" and action == "cancel" and standing.state.terminal else code

    def cancel(tables: Tables, row: JobRow, now_ms: int) -> None:
        row.cancel_requested_at_ms = now_ms
        if row.waits:
            tables.leave(row)
        if row.state.terminal and row.active is not None:
            tables.active.setdefault(row.active, row.job)
        if row.lease is None:
            tables.close_cancelled(row, now_ms)
        else:
            row.revision += 1

    patch.setattr(control, "refusal", lax)
    patch.setattr(control, "_cancel", cancel)


def _recovery_is_early(patch: Patch) -> None:
    run = recover._recover

    def early(tables: Tables, application: str, decide: Any, limit: int, worker: Any, now_ms: int) -> int:
        return run(tables, application, decide, limit, worker, now_ms + 100)

    patch.setattr(recover, "_recover", early)


def _a_claim_charges_nothing(patch: Patch) -> None:
    take = claim._take

    def free(tables: Tables, row: JobRow, *rest: Any) -> None:
        before = row.executions
        take(tables, row, *rest)
        row.executions = max(before, 1) if row.begun else before

    patch.setattr(claim, "_take", free)


def _a_worker_writes_what_it_declared_lost(patch: Patch) -> None:
    lose = Rehearsal._lose

    def writing(play: Rehearsal, attempt: Any) -> None:
        lose(play, attempt)
        if attempt.begun:
            outcome = Outcome(OutcomeKind.FAILED, code="handler_failed")
            play.settle(Settlement(attempt, outcome, JobState.FAILED, code="handler_failed"))

    patch.setattr(Rehearsal, "_lose", writing)


PLANTS: Final = (
    Plant("I1", _a_batch_loses_its_last_job),
    Plant("I2", _a_refusal_comes_after_the_write),
    Plant("I4", _a_dispatch_sent_again_is_applied_again),
    Plant("I5", _a_batch_loses_its_last_job),
    Plant("I9", _a_cancel_counts_after_the_end),
    Plant("I11", _retry_keeps_executions),
    Plant("I11", _crashes_count_across_generations),
    Plant("I11", _a_wait_does_not_push_the_expiry),
    Plant("I11", _a_claim_charges_nothing),
    Plant("I12", _release_keeps_the_number),
    Plant("I13", _a_delay_is_not_waited_for),
    Plant("I13", _a_delay_is_drawn_again),
    Plant("I14", _delays_are_drawn_from_nothing_up),
    Plant("I15", _recovery_drops_the_cancel),
    Plant("I15", _settle_ignores_the_cancel),
    Plant("I15", _release_forgets_the_cancel),
    Plant("I16", _a_wait_is_two_revisions),
    Plant("I16", _a_wait_is_three_revisions),
    Plant("I16", _controls_ignore_the_revision),
    Plant("I17", _recovery_is_early),
    Plant("I18", _the_token_is_not_asked_for),
    Plant("I18", _marks_count_after_the_loss),
    Plant("I19", _a_worker_writes_what_it_declared_lost),
    Plant("I31", _a_control_sent_again_is_judged_again),
    Plant("I32", _the_audit_is_a_commit_of_its_own),
    Plant("I34", _a_refused_control_is_audited),
    Plant("events", _a_cursor_runs_ahead),
)


def _with_first_job(history: History, **changes: Any) -> History:
    first = history.jobs[0]
    changed = msgspec.structs.replace(first, record=msgspec.structs.replace(first.record, **changes))
    return msgspec.structs.replace(history, jobs=[changed, *history.jobs[1:]])


def _with_an_attempt(history: History, **changes: Any) -> History:
    """The first job that was tried, its first attempt changed."""
    place, job = next((place, job) for place, job in enumerate(history.jobs) if job.record.attempts)
    attempts = list(job.record.attempts)
    attempts[0] = msgspec.structs.replace(attempts[0], **changes)
    record = msgspec.structs.replace(job.record, attempts=attempts)
    jobs = list(history.jobs)
    jobs[place] = msgspec.structs.replace(job, record=record)
    return msgspec.structs.replace(history, jobs=jobs)


def _a_job_is_lost(history: History) -> History:
    return msgspec.structs.replace(history, jobs=history.jobs[1:])


def _a_receipt_names_another_job(history: History) -> History:
    place, line = next((at, line) for at, line in enumerate(history.lines) if line.given)
    told = [given.job_id for given in line.given]
    others = [job.record.job_id for job in history.jobs if job.record.job_id not in told]
    lines = list(history.lines)
    lines[place] = msgspec.structs.replace(line, given=[Given(job_id) for job_id in others[: len(told)]])
    return msgspec.structs.replace(history, lines=lines)


def _a_job_comes_from_nowhere(history: History) -> History:
    first = history.jobs[0]
    stranger = msgspec.structs.replace(first, operation_id=bytes(16))
    return msgspec.structs.replace(history, jobs=[stranger, *history.jobs[1:]])


def _a_generation_ends_twice(history: History) -> History:
    return msgspec.structs.replace(history, closings=[*history.closings, history.closings[0]])


def _runs_overlap(history: History) -> History:
    """A second run of a job begins before the first one's last mark."""
    begin, last = next((run[0], run[-1]) for run in history.runs.values() if len(run) > 1)
    between_ns = (begin.at_ns + last.at_ns) // 2
    other = msgspec.structs.replace(begin, attempt_id=bytes(16), at_ns=between_ns)
    return msgspec.structs.replace(history, marks=[*history.marks, other])


def _a_child_outlives_the_settlement(history: History) -> History:
    """As when an end is written before what the killed run had started was swept away."""
    crashed = (attempt for job in history.jobs for attempt in job.record.attempts if attempt.death is not None)
    attempt = next(attempt for attempt in crashed if attempt.attempt_id in history.runs)
    last = history.runs[attempt.attempt_id][-1]
    left = msgspec.structs.replace(last, step="left", at_ms=attempt.ended_at_ms + 50, at_ns=last.at_ns + 1)
    return msgspec.structs.replace(history, marks=[*history.marks, left])


def _a_job_is_stuck(history: History) -> History:
    return _with_first_job(history, state=JobState.RUNNING, due_at_ms=None)


def _a_count_is_off(history: History) -> History:
    return msgspec.structs.replace(history, live=history.live + 1)


def _a_descriptor_is_left(history: History) -> History:
    return msgspec.structs.replace(history, residues=[Residue("descriptors of the parent", 20, 21)])


def _a_run_costs_more_than_its_process(history: History) -> History:
    """As when two attempts are measured as one."""
    marks = [msgspec.structs.replace(mark, cpu_us=0, pid=1, born=1) for mark in history.marks]
    jobs = []
    for job in history.jobs:
        attempts = [
            attempt
            if attempt.usage is None
            else msgspec.structs.replace(attempt, usage=msgspec.structs.replace(attempt.usage, cpu_user_us=5_000))
            for attempt in job.record.attempts
        ]
        jobs.append(msgspec.structs.replace(job, record=msgspec.structs.replace(job.record, attempts=attempts)))
    return msgspec.structs.replace(history, marks=marks, jobs=jobs)


def _an_error_is_too_long(history: History) -> History:
    return _with_an_attempt(history, error=ErrorDetail("ValueError", "x", "y" * 20_000))


def _an_error_is_no_text(history: History) -> History:
    return _with_an_attempt(history, error=ErrorDetail("ValueError", "\ud800"))


CHANGES: Final = (
    Change("I1", _a_job_is_lost),
    Change("I3", _a_receipt_names_another_job),
    Change("I6", _a_job_comes_from_nowhere),
    Change("I10", _a_generation_ends_twice),
    Change("I22", _runs_overlap),
    Change("I22", _a_child_outlives_the_settlement),
    Change("I35", _a_count_is_off),
    Change("I36", _a_job_is_stuck),
    Change("I37", _a_descriptor_is_left),
    Change("I39", _a_run_costs_more_than_its_process),
    Change("I40", _an_error_is_too_long),
    Change("I40", _an_error_is_no_text),
)
