"""What a pool shows of itself while it works: what each executor does, marks, stacks, health."""

import asyncio
import math
import os
import signal
import time
from pathlib import Path

import msgspec

from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.health import HealthStatus
from runwick_supervisor.activity import health_of
from tests.supervisor.applications.deeds import Echo, Heed, Hold
from tests.supervisor.crew import crew, until


def test_each_executor_says_what_it_does(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its:
            attempt = its.attempt(Hold(str(tmp_path / "started"), str(tmp_path / "gate")))
            its.give(attempt)
            await until((tmp_path / "started").exists, "the run")
            busy, idle = its.backend.doing()
            assert (busy.number, busy.pool, busy.phase) == (1, "main", "handle")
            assert (busy.job_id, busy.attempt_id, busy.name) == (attempt.job_id, attempt.attempt_id, "deeds.hold")
            assert busy.process == its.executors[0].pid
            assert busy.begun_at_ms is not None
            assert abs(busy.begun_at_ms - time.time() * 1000) < 10_000
            assert busy.cpu_us is not None
            assert busy.rss_bytes is not None
            assert busy.rss_bytes > 2**20
            assert (idle.number, idle.phase, idle.job_id, idle.attempts) == (2, "idle", None, 0)
            (mark,) = its.backend.marks()
            assert (mark.job, mark.claim_token) == (attempt.job, attempt.claim_token)
            assert abs(mark.begun_at_ms - busy.begun_at_ms) < 1_000
            (tmp_path / "gate").touch()
            await until(lambda: its.outcomes, "the run to end")
            assert its.backend.marks() == []
            assert its.backend.doing()[0].attempts == 1

    asyncio.run(scene())


def test_a_run_that_is_asked_to_end_is_shown_as_stopping(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            attempt = its.attempt(Heed(str(tmp_path / "started")))
            attempt = msgspec.structs.replace(attempt)
            its.give(attempt)
            await until((tmp_path / "started").exists, "the run")
            os.kill(its.executors[0].pid, signal.SIGSTOP)
            its.backend.ask([attempt], CancellationCause.USER_REQUESTED, 60.0)
            assert its.backend.doing()[0].phase == "stopping"
            os.kill(its.executors[0].pid, signal.SIGCONT)
            await until(lambda: its.outcomes, "the run to end")
            assert its.backend.doing()[0].phase == "idle"

    asyncio.run(scene())


def test_the_stack_of_a_run_can_be_seen_and_the_run_goes_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its:
            attempt = its.attempt(Hold(str(tmp_path / "started"), str(tmp_path / "gate")))
            its.give(attempt)
            await until((tmp_path / "started").exists, "the run")
            for times in (1, 2):
                its.backend.look([attempt.attempt_id, b"another pool's"])
                await until(lambda times=times: len(its.stacks) == times, "its stack")  # type: ignore[misc]
            assert {answer.attempt_id for answer in its.stacks} == {attempt.attempt_id}
            assert all("in hold" in answer.text for answer in its.stacks)
            pid = its.executors[0].pid
            os.kill(pid, signal.SIGKILL)
            await until(lambda: attempt.job in its.outcomes, "the crash")
            assert its.outcomes[attempt.job][0].black_box is None, "what was looked at is no last stack"

    asyncio.run(scene())


def test_a_stack_is_waited_for_while_its_executor_gets_no_core_but_not_for_ever(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            attempt = its.attempt(Hold(str(tmp_path / "started"), str(tmp_path / "gate")))
            its.give(attempt)
            await until((tmp_path / "started").exists, "the run")
            (executor,) = its.executors
            now_s = asyncio.get_running_loop().time()
            os.kill(executor.pid, signal.SIGSTOP)
            its.backend.look([attempt.attempt_id])
            its.backend._overseer.attend(executor, now_s + 1.0)
            os.kill(executor.pid, signal.SIGCONT)
            await until(lambda: its.stacks, "its stack")
            assert "in hold" in its.stacks[0].text
            os.kill(executor.pid, signal.SIGSTOP)
            its.backend.look([attempt.attempt_id])
            its.backend._overseer.attend(executor, now_s + 60.0)
            assert its.backend._overseer.due_s(executor, now_s) == math.inf
            os.kill(executor.pid, signal.SIGCONT)
            (tmp_path / "gate").touch()
            await until(lambda: attempt.job in its.outcomes, "the run to end")
            assert len(its.stacks) == 1

    asyncio.run(scene())


def test_nobody_answers_for_a_run_that_has_ended() -> None:
    async def scene() -> None:
        async with crew(1) as its:
            attempt = its.attempt(Echo("done"))
            its.give(attempt)
            await until(lambda: its.outcomes, "the run to end")
            its.backend.look([attempt.attempt_id])
            await its.run(Echo("next"))
            assert its.stacks == []

    asyncio.run(scene())


def test_a_pool_without_executors_says_so_at_once_and_is_well_again() -> None:
    async def scene() -> None:
        async with crew(1) as its:
            assert its.backend.health().status is HealthStatus.HEALTHY
            assert its.zygote._running is not None
            zygote = its.zygote._running.process.pid
            os.kill(zygote, signal.SIGSTOP)
            os.kill(its.executors[0].pid, signal.SIGKILL)
            await until(lambda: not its.executors, "its death")
            health = its.backend.health()
            assert (health.role, health.status, health.code) == ("pool main", HealthStatus.UNHEALTHY, "no_executors")
            assert its.backend.doing()[0].phase == "starting"
            os.kill(zygote, signal.SIGCONT)
            await until(lambda: its.backend.health().status is HealthStatus.HEALTHY, "a replacement")

    asyncio.run(scene())


def test_a_pool_that_misses_some_for_long_is_degraded() -> None:
    assert health_of("main", 3, 4, 0.5).status is HealthStatus.HEALTHY
    health = health_of("main", 3, 4, 1.5)
    assert (health.status, health.code) == (HealthStatus.DEGRADED, "executors_missing")
    assert health.text == "3 of 4 executors are ready"
