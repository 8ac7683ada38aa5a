"""What a pool of executors shows of itself: what each one does, which runs have begun, whether enough of them live."""

from typing import Final

from runwick.contracts.activity import ExecutorActivity, Mark
from runwick.contracts.health import HealthStatus, RoleHealth
from runwick_supervisor.executor import Executor
from runwick_supervisor.fence import now_ns

_MISSING_AFTER_S: Final = 1.0
"""One that is replaced as it should be is not missed: births take milliseconds, and pauses are told."""


def activity_of(
    number: int, pool: str, executor: Executor | None, now_ms: int, restarts: int, restarted_for: str | None
) -> ExecutorActivity:
    """What the executor in this place does; None is one that is on the way."""
    if executor is None:
        return ExecutorActivity(
            number=number, pool=pool, phase="starting", restarts=restarts, restarted_for=restarted_for
        )
    sample = executor.probe.sample()
    progress = executor.progress()
    attempt = None
    begun_at_ms = cpu_us = None
    if progress.begun_at_ns is not None:
        attempt = executor.held[0].attempt
        begun_at_ms = now_ms - (now_ns() - progress.begun_at_ns) // 1_000_000
        if sample is not None and progress.before is not None:
            cpu_us = max(0, sample.cpu_us - progress.before.utime_us - progress.before.stime_us)
    return ExecutorActivity(
        number=number,
        pool=pool,
        phase=_phase(executor, progress.phase),
        process=executor.pid,
        job_id=None if attempt is None else attempt.job_id,
        attempt_id=None if attempt is None else attempt.attempt_id,
        name=None if attempt is None else attempt.kind.name,
        begun_at_ms=begun_at_ms,
        cpu_us=cpu_us,
        rss_bytes=None if sample is None else sample.rss_bytes,
        attempts=executor.attempts,
        restarts=restarts,
        restarted_for=restarted_for,
    )


def _phase(executor: Executor, of_run: str | None) -> str:
    if not executor.is_ready:
        return "starting"
    if executor.stopping is not None:
        return "stopping"
    return of_run or ("leaving" if executor.leaving else "idle")


def mark_of(executor: Executor, now_ms: int) -> Mark | None:
    """The mark of the run that it is at; None when it has none."""
    begun_at_ns = executor.progress().begun_at_ns
    if begun_at_ns is None:
        return None
    attempt = executor.held[0].attempt
    return Mark(attempt.job, attempt.claim_token, now_ms - (now_ns() - begun_at_ns) // 1_000_000)


def health_of(pool: str, ready: int, wanted: int, missing_for_s: float) -> RoleHealth:
    """Whether a pool has its executors.

    Args:
        pool: its name.
        ready: how many can work.
        wanted: how many should.
        missing_for_s: since when there are fewer than that.
    """
    text = f"{ready} of {wanted} executors are ready"
    role = f"pool {pool}"
    if ready == 0:
        return RoleHealth(role, HealthStatus.UNHEALTHY, "no_executors", text)
    if ready < wanted and missing_for_s >= _MISSING_AFTER_S:
        return RoleHealth(role, HealthStatus.DEGRADED, "executors_missing", text)
    return RoleHealth(role, HealthStatus.HEALTHY, None, text)
