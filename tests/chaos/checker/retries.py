"""Budgets, due times and delays."""

from collections.abc import Iterator
from typing import Final

from runwick.contracts.attempts import PAYLOAD_INLINE_MAX_BYTES
from runwick.contracts.history import AuditRecord
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState
from runwick.contracts.stores import AttemptRecord
from tests.chaos.history import History, StoredJob

_WAIT_A_DELAY: Final = frozenset({OutcomeKind.FAILED, OutcomeKind.TIMED_OUT, OutcomeKind.CRASHED})


def no_budget_is_exceeded_or_cut_short(history: History) -> Iterator[str]:
    """Executions and crashes stay within their budgets, and no job dies before a budget is used up or its time is over;
    every generation has budgets of its own."""
    for job in history.jobs:
        for generation in range(1, job.record.generation + 1):
            for wrong in _budget(history, job, generation):
                yield f"job {id_text(job.record.job_id)}, generation {generation}: {wrong}"


def _budget(history: History, job: StoredJob, generation: int) -> Iterator[str]:
    attempts, policy = history.attempts(job, generation), job.policy
    crashes = sum(attempt.outcome == OutcomeKind.CRASHED for attempt in attempts)
    end = history.ends.get((job.record.job_id, generation))
    if len(attempts) > policy.max_executions:
        yield f"{len(attempts)} executions of {policy.max_executions}"
    if crashes > policy.max_crashes:
        yield f"{crashes} crashes of {policy.max_crashes}"
    if end is None:
        return
    if end.executions is not None and not len(attempts) <= end.executions <= policy.max_executions:
        yield f"{end.executions} executions were charged for {len(attempts)} attempts of {policy.max_executions}"
    if end.code == "executions_exhausted" and len(attempts) != policy.max_executions:
        yield f"called exhausted after {len(attempts)} of {policy.max_executions}"
    if end.code == "poison_job" and crashes != policy.max_crashes:
        yield f"called poison after {crashes} of {policy.max_crashes} crashes"
    if end.code == "expired" and end.ended_at_ms < (until_ms := _lived_until_ms(history, job, generation)):
        yield f"expired {until_ms - end.ended_at_ms} ms too early"


def _lived_until_ms(history: History, job: StoredJob, generation: int) -> int:
    """The earliest end that expiry may give this generation."""
    since_ms = job.record.created_at_ms
    since_ms = max((record.at_ms for record in _opened(history, job, generation)), default=since_ms)
    for attempt in history.attempts(job, generation):
        since_ms = max(since_ms, attempt.ended_at_ms + (attempt.delay_ms or 0))
    return since_ms + (job.lives_ms or 0)


def _opened(history: History, job: StoredJob, generation: int) -> Iterator[AuditRecord]:
    """Who opened it; one record where all is well."""
    for record in history.audited.get((job.record.job_id, generation), ()):
        if record.action in ("retry", "rerun"):
            yield record


def nothing_runs_before_it_is_due(history: History) -> Iterator[str]:
    """No claim before the time asked for, before the delay is over, or before somebody opened the generation; no run
    before its claim."""
    not_before_ms: dict[bytes, int] = {}
    for wanted in (wanted for call in history.dispatches for wanted in call.asked.jobs):
        not_before_ms.setdefault(wanted.job_id, wanted.not_before_ms)  # the first sending's, which may have landed
    for job in history.jobs:
        due_ms, generation = not_before_ms.get(job.record.job_id, 0), 1
        for attempt in job.record.attempts:
            if attempt.generation != generation:
                generation = attempt.generation
                due_ms = max((record.at_ms for record in _opened(history, job, generation)), default=due_ms)
            claimed_ms = history.claimed_at_ms.get(attempt.attempt_id)
            if claimed_ms is not None and claimed_ms < due_ms:
                early_ms = due_ms - claimed_ms
                yield f"job {id_text(job.record.job_id)}: attempt {attempt.number} came {early_ms} ms too early"
            due_ms = attempt.ended_at_ms + (attempt.delay_ms or 0)
    for attempt_id, run in history.runs.items():
        claimed_ms = history.claimed_at_ms.get(attempt_id)
        if claimed_ms is not None and run[0].at_ms < claimed_ms:
            yield f"attempt {id_text(attempt_id)} ran {claimed_ms - run[0].at_ms} ms before its claim"


def delays_are_the_policys_and_drawn_once(history: History) -> Iterator[str]:
    """A delay lies between half its nominal length and all of it, and the job waits for exactly that."""
    for job in history.jobs:
        for generation in range(1, job.record.generation + 1):
            attempts = history.attempts(job, generation)
            for execution, attempt in enumerate(attempts, start=1):
                if (wrong := _delay(job.policy, execution, attempt)) is not None:
                    yield f"job {id_text(job.record.job_id)}, attempt {generation}.{attempt.number}: {wrong}"
            last = attempts[-1] if attempts else None
            if generation == job.record.generation and last is not None:
                wrong = _wait(job, last, deferred=job.record.job_id in history.limited)
                if wrong is not None:
                    yield f"job {id_text(job.record.job_id)}: {wrong}"


def _delay(policy: JobPolicy, execution: int, attempt: AttemptRecord) -> str | None:
    if attempt.delay_ms is None:
        return None
    nominal_ms = min(policy.retry_max_ms, policy.retry_initial_ms << (execution - 1))
    if attempt.outcome not in _WAIT_A_DELAY:
        return f"it was {attempt.outcome} and made its job wait"
    if not nominal_ms // 2 <= attempt.delay_ms <= nominal_ms:
        return f"a delay of {attempt.delay_ms} ms of nominally {nominal_ms}"
    return None


def _wait(job: StoredJob, last: AttemptRecord, *, deferred: bool) -> str | None:
    """A rate window may have made it wait for longer."""
    record = job.record
    if record.state is not JobState.RETRYING or job.payload_bytes > PAYLOAD_INLINE_MAX_BYTES:
        return None  # one that was abandoned before it began waits for another reason
    if last.delay_ms is None:
        return f"it waits without a delay after {last.outcome}" if last.outcome in _WAIT_A_DELAY else None
    early_ms = last.ended_at_ms + last.delay_ms - (record.due_at_ms or 0)
    if early_ms > 0 or (early_ms < 0 and not deferred):
        return f"it waits until {record.due_at_ms}, its delay ends at {last.ended_at_ms + last.delay_ms}"
    return None
