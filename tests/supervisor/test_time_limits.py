"""A run that takes longer than it may is asked to end, and stopped when it does not, whatever it is doing."""

import asyncio
from pathlib import Path

import msgspec

from runwick import Job
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.outcomes import OutcomeKind
from runwick_supervisor.events import EventKind
from tests.supervisor.applications.deeds import Echo, Heed, Hold
from tests.supervisor.crew import Crew, crew, until


def limited(its: Crew, job: Job, limit_ms: int) -> int:
    """Hand over a run with a time limit; answers its number."""
    attempt = its.attempt(job)
    policy = msgspec.structs.replace(attempt.policy, execution_timeout_ms=limit_ms)
    its.give(msgspec.structs.replace(attempt, policy=policy))
    return attempt.job


def test_a_handler_without_a_token_is_interrupted_and_its_executor_replaced(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            overdue = limited(its, Hold(str(tmp_path / "started"), str(tmp_path / "gate")), 100)
            await until(lambda: overdue in its.outcomes, "the time limit")
            (outcome,) = its.outcomes[overdue]
            assert (outcome.kind, outcome.code, outcome.death) == (OutcomeKind.TIMED_OUT, "execution_timed_out", None)
            assert outcome.usage is not None
            assert outcome.usage.wall_us is not None
            assert outcome.usage.wall_us >= 100_000, "it was asked before its time"
            await until(lambda: its.heard(EventKind.EXECUTOR_RECYCLED), "another executor in its place")
            assert "JobCancelled was raised in it" in its.heard(EventKind.EXECUTOR_RECYCLED)[0].text
            assert await its.result(Echo("next")) == "next"
            assert its.heard(EventKind.EXECUTOR_DIED) == [], "it did not die by itself"
            assert its.overdue == [(overdue, CancellationCause.TIMEOUT)], "the asking is told, once"

    asyncio.run(scene())


def test_a_timeout_is_one_even_where_the_handler_then_returns(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            overdue = limited(its, Heed(str(tmp_path / "started")), 50)
            await until(lambda: overdue in its.outcomes, "the time limit")
            (outcome,) = its.outcomes[overdue]
            assert (outcome.kind, outcome.code, outcome.death) == (OutcomeKind.TIMED_OUT, "execution_timed_out", None)

    asyncio.run(scene())


def test_what_waits_behind_it_runs_elsewhere_and_a_run_within_its_limit_is_left_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            await its.make_known(Hold())
            overdue = limited(its, Hold(str(tmp_path / "started"), str(tmp_path / "gate")), 60)
            patient = limited(its, Hold(), 60_000)
            await until(lambda: {overdue, patient} <= its.outcomes.keys() | set(its.given_back), "both to end")
            assert its.outcomes[overdue][0].kind is OutcomeKind.TIMED_OUT
            assert patient in its.given_back or its.outcomes[patient][0].kind is OutcomeKind.SUCCEEDED

    asyncio.run(scene())
