"""As `shown`, for workers, scopes and rate windows, and for what was done to queues and scopes."""

from collections.abc import Sequence

from runwick.contracts.activity import ExecutorActivity, WorkerRecord
from runwick.contracts.controls import SteerReply
from runwick.contracts.identity import id_text
from runwick.contracts.limits import RateRecord, ScopeRecord
from runwick.management.bodies import ExecutorBody, RateBody, ScopeBody, SteerBody, WorkerBody
from runwick.management.desk.shown import maybe_id, maybe_time, time_text


def steer_body(reply: SteerReply, command_id: bytes) -> SteerBody:
    """What became of a queue or scope."""
    return SteerBody(
        succeeded=reply.code is None,
        code=reply.code,
        revision=reply.revision,
        before=reply.before,
        after=reply.after,
        replayed=reply.replayed,
        command_id=id_text(command_id),
    )


def worker_body(record: WorkerRecord, executors: Sequence[ExecutorBody], *, alive: bool) -> WorkerBody:
    """One worker with its executors."""
    return WorkerBody(
        worker=id_text(record.presence.worker),
        host=record.presence.host,
        process=record.presence.process,
        queues=tuple(record.presence.queues),
        alive=alive,
        seen_at=time_text(record.seen_at_ms),
        departed_at=maybe_time(record.departed_at_ms),
        told_at=maybe_time(record.told_at_ms),
        executors=tuple(executors),
    )


def executor_body(activity: ExecutorActivity, *, shows_job: bool) -> ExecutorBody:
    """What one executor did when its worker last told; whose job only where that may be seen."""
    return ExecutorBody(
        number=activity.number,
        pool=activity.pool,
        phase=activity.phase,
        process=activity.process,
        job_id=maybe_id(activity.job_id) if shows_job else None,
        attempt_id=maybe_id(activity.attempt_id) if shows_job else None,
        name=activity.name if shows_job else None,
        begun_at=maybe_time(activity.begun_at_ms),
        cpu_us=activity.cpu_us,
        rss_bytes=activity.rss_bytes,
        attempts=activity.attempts,
        restarts=activity.restarts,
        restarted_for=activity.restarted_for,
    )


def scope_body(scope: ScopeRecord) -> ScopeBody:
    """One scope."""
    return ScopeBody(
        id=scope.id.hex(),
        kind=scope.kind.value,
        key=scope.key,
        capacity=scope.capacity,
        in_use=scope.in_use,
        waiting=scope.waiting,
        revision=scope.revision,
        fence=scope.fence,
    )


def rate_body(rate: RateRecord) -> RateBody:
    """One rate window."""
    return RateBody(
        id=rate.id.hex(),
        kind=rate.kind.value,
        key=rate.key,
        max_executions=rate.max_executions,
        window_ms=rate.window_ms,
        granted=rate.granted,
        in_window=rate.in_window,
        waiting=rate.waiting,
    )
