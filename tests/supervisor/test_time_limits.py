"""A run that takes longer than it may is stopped by the death of its executor, whatever it is doing."""

import asyncio
from pathlib import Path

import msgspec

from runwick.contracts.outcomes import OutcomeKind
from runwick_supervisor.events import EventKind
from tests.supervisor.applications.deeds import Echo, Hold
from tests.supervisor.crew import Crew, crew, until


def limited(its: Crew, hold: Hold, limit_ms: int) -> int:
    """Hand over a run with a time limit; answers its number."""
    attempt = its.attempt(hold)
    policy = msgspec.structs.replace(attempt.policy, execution_timeout_ms=limit_ms)
    its.backend.hand_over([msgspec.structs.replace(attempt, policy=policy)])
    return attempt.job


def test_it_ends_as_timed_out_and_its_executor_is_replaced(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            overdue = limited(its, Hold(str(tmp_path / "started"), str(tmp_path / "gate")), 100)
            await until(lambda: overdue in its.outcomes, "the time limit")
            (outcome,) = its.outcomes[overdue]
            assert (outcome.kind, outcome.code) == (OutcomeKind.TIMED_OUT, "execution_timed_out")
            assert outcome.usage is not None
            assert outcome.usage.wall_us is not None
            assert outcome.usage.wall_us >= 90_000
            assert await its.result(Echo("next")) == "next"
            assert its.heard(EventKind.EXECUTOR_DIED) == [], "it did not die by itself"

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
