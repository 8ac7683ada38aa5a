"""From what stores answer to what operators are told: ids as text, times as ISO 8601. It decides nothing."""

import msgspec

from runwick.contracts.activity import WorkerRecord
from runwick.contracts.controls import ControlReply
from runwick.contracts.history import AuditRecord, JobEvent
from runwick.contracts.identity import id_text
from runwick.contracts.limits import RateRecord, ScopeRecord
from runwick.contracts.listing import JobSummary
from runwick.contracts.outcomes import Death
from runwick.contracts.states import LEASED_STATES
from runwick.contracts.stores import AttemptRecord, JobRecord
from runwick.contracts.usage import Usage
from runwick.contracts.waiting import WaitReason, WaitReport
from runwick.management.amounts import instant
from runwick.management.bodies import (
    AttemptBody,
    AuditBody,
    ControlBody,
    DeathBody,
    EventBody,
    JobBody,
    JobDetailBody,
    LimitBody,
    RunningBody,
    UsageBody,
    WaitBody,
    WaitReasonBody,
)
from runwick.management.deaths import death_text
from runwick.management.reasons import reason_text


def time_text(at_ms: int) -> str:
    """``2026-11-30T10:55:16.123Z``."""
    return instant(at_ms).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def maybe_time(at_ms: int | None) -> str | None:
    """`time_text`, where there is a time."""
    return None if at_ms is None else time_text(at_ms)


def maybe_id(raw: bytes | None) -> str | None:
    """The id as text, where there is one."""
    return None if raw is None else id_text(raw)


def job_body(job: JobSummary | JobRecord) -> JobBody:
    """One job as a list has it."""
    return JobBody(
        job_id=id_text(job.job_id),
        name=job.kind.name,
        version=job.kind.version,
        queue=job.lane.queue,
        priority=job.lane.priority,
        state=job.state,
        handed_over=job.state in LEASED_STATES and job.begun_at_ms is None,
        code=job.code,
        generation=job.generation,
        revision=job.revision,
        executions=job.executions,
        max_executions=job.max_executions,
        created_at=time_text(job.created_at_ms),
        due_at=maybe_time(job.due_at_ms),
        begun_at=maybe_time(job.begun_at_ms),
        ended_at=maybe_time(job.ended_at_ms),
        cancel_requested_at=maybe_time(job.cancel_requested_at_ms),
        tenant=job.tenant,
        payload_bytes=job.payload_bytes,
    )


def job_detail_body(job: JobRecord, running: RunningBody | None) -> JobDetailBody:
    """One job with its history."""
    return JobDetailBody(
        **msgspec.structs.asdict(job_body(job)),
        expires_at=maybe_time(job.expires_at_ms),
        has_result=job.result is not None,
        attempts=tuple(map(attempt_body, job.attempts)),
        running=running,
    )


def running_body(
    job: JobRecord, holder: WorkerRecord | None, *, worker_alive: bool | None, shows_place: bool
) -> RunningBody | None:
    """What is known of the attempt under way, and on which host and in which process it runs where that may be seen;
    None when nobody holds the job."""
    if job.worker is None or job.attempt_id is None:
        return None
    executors = () if holder is None else holder.executors
    executor = next((each for each in executors if each.attempt_id == job.attempt_id), None)
    begun_at_ms = job.begun_at_ms
    if begun_at_ms is None and executor is not None:
        begun_at_ms = executor.begun_at_ms
    return RunningBody(
        attempt_id=id_text(job.attempt_id),
        worker=id_text(job.worker),
        worker_alive=worker_alive,
        host=holder.presence.host if holder is not None and shows_place else None,
        process=executor.process if executor is not None and shows_place else None,
        executor=None if executor is None else executor.number,
        pool=None if executor is None else executor.pool,
        phase=None if executor is None else executor.phase,
        begun_at=maybe_time(begun_at_ms),
        cpu_us=None if executor is None else executor.cpu_us,
        rss_bytes=None if executor is None else executor.rss_bytes,
        told_at=None if holder is None else maybe_time(holder.told_at_ms),
    )


def attempt_body(attempt: AttemptRecord) -> AttemptBody:
    """One attempt that has ended."""
    return AttemptBody(
        attempt_id=id_text(attempt.attempt_id),
        generation=attempt.generation,
        number=attempt.number,
        outcome=attempt.outcome,
        code=attempt.code,
        begun_at=maybe_time(attempt.begun_at_ms),
        ended_at=time_text(attempt.ended_at_ms),
        worker=maybe_id(attempt.worker),
        delay_ms=attempt.delay_ms,
        usage=None if attempt.usage is None else usage_body(attempt.usage),
        death=None if attempt.death is None else death_body(attempt.death),
        has_error=attempt.error is not None,
        has_black_box=attempt.black_box is not None,
    )


def usage_body(usage: Usage) -> UsageBody:
    """What an attempt cost."""
    return UsageBody(
        wall_us=usage.wall_us,
        cpu_user_us=usage.cpu_user_us,
        cpu_system_us=usage.cpu_system_us,
        cpu_children_us=usage.cpu_children_us,
        rss_peak_bytes=usage.rss_peak_bytes,
        rss_end_bytes=usage.rss_end_bytes,
        faults_minor=usage.faults_minor,
        faults_major=usage.faults_major,
        switches_voluntary=usage.switches_voluntary,
        switches_involuntary=usage.switches_involuntary,
        allocated_bytes=usage.allocated_bytes,
        allocated_blocks=usage.allocated_blocks,
        allocations_by=usage.allocations_by,
    )


def death_body(death: Death) -> DeathBody:
    """How an executor died, in words as well."""
    return DeathBody(
        cause=death.cause,
        signal=death.signal,
        status=death.status,
        phase=death.phase,
        text=death_text(death),
    )


def wait_body(report: WaitReport) -> WaitBody:
    """Why a job waits."""
    return WaitBody(
        job_id=id_text(report.job_id),
        state=report.state,
        reasons=tuple(map(_reason_body, report.reasons)),
        as_of=time_text(report.at_ms),
    )


def _reason_body(reason: WaitReason) -> WaitReasonBody:
    return WaitReasonBody(
        code=reason.code.value,
        text=reason_text(reason),
        until=maybe_time(reason.until_ms),
        limit=None if reason.limit is None else _limit_body(reason.limit),
        ahead=reason.ahead,
    )


def _limit_body(limit: ScopeRecord | RateRecord) -> LimitBody:
    scope, rate = (limit, None) if isinstance(limit, ScopeRecord) else (None, limit)
    return LimitBody(
        kind=limit.kind.value,
        key=limit.key,
        capacity=None if scope is None else scope.capacity,
        in_use=None if scope is None else scope.in_use,
        max_executions=None if rate is None else rate.max_executions,
        window_ms=None if rate is None else rate.window_ms,
        in_window=None if rate is None else rate.in_window,
    )


def control_bodies(reply: ControlReply, command_id: bytes) -> dict[bytes, ControlBody]:
    """What became of each job that a command was about."""
    return {
        answer.job_id: ControlBody(
            succeeded=answer.code is None,
            code=answer.code,
            job_id=id_text(answer.job_id),
            state=answer.state,
            generation=answer.generation,
            revision=answer.revision,
            cancel_requested=answer.cancel_requested,
            attempt_id=maybe_id(answer.attempt_id),
            replayed=reply.replayed,
            command_id=id_text(command_id),
        )
        for answer in reply.answers
    }


def event_body(event: JobEvent) -> EventBody:
    """One thing that happened to a job."""
    return EventBody(
        cursor=event.cursor,
        what=event.what.value,
        at=time_text(event.at_ms),
        job_id=id_text(event.job_id),
        name=event.kind.name,
        queue=event.lane.queue,
        priority=event.lane.priority,
        generation=event.generation,
        number=event.number,
        state=event.state,
        code=event.code,
        attempt_id=maybe_id(event.attempt_id),
        command_id=maybe_id(event.command_id),
    )


def audit_body(record: AuditRecord) -> AuditBody:
    """One thing that an operator did."""
    return AuditBody(
        at=time_text(record.at_ms),
        actor=record.actor,
        actor_display=record.actor_display,
        actor_scheme=record.actor_scheme,
        action=record.action,
        target=record.target,
        job_id=maybe_id(record.job_id),
        generation=record.generation,
        before=record.before,
        after=record.after,
        reason=record.reason,
        command_id=maybe_id(record.command_id),
    )
