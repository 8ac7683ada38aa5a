"""Until when executors may live: their slots of the fence follow the leases of what they hold."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from runwick.contracts.outcomes import OutcomeKind
from runwick_supervisor.fence import now_ns
from tests.supervisor.applications.deeds import Hold, Nothing
from tests.supervisor.crew import LEASE_S, Crew, crew, until

MARGIN_S = 0.4


def fenced_for_s(its: Crew, number: int = 1) -> float:
    """How long its slot lets this executor live; 0 when it says nothing."""
    deadline_ns = its.zygote.fence.get(number)
    return (deadline_ns - now_ns()) / 1e9 if deadline_ns else 0.0


def test_a_slot_is_set_with_work_follows_renewals_and_is_lifted_when_it_is_idle(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2, fence_margin_s=MARGIN_S) as its:
            assert fenced_for_s(its) == 0
            attempt = its.attempt(Hold(str(tmp_path / "started"), str(tmp_path / "gate")))
            its.give(attempt)
            assert fenced_for_s(its) == pytest.approx(LEASE_S + MARGIN_S, abs=10)
            assert fenced_for_s(its, 2) == 0
            its.backend.extend({attempt.attempt_id: time.monotonic() + 1000, b"another pool's": 0.0})
            assert fenced_for_s(its) == pytest.approx(1000 + MARGIN_S, abs=10)
            (tmp_path / "gate").touch()
            await until(lambda: fenced_for_s(its) == 0, "the slot to be lifted")

    asyncio.run(scene())


def test_what_waits_behind_counts_too_and_the_shortest_lease_wins(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, fence_margin_s=MARGIN_S) as its:
            await its.make_known(Hold())
            await until(lambda: fenced_for_s(its) == 0, "the slot to be lifted")
            long = its.attempt(Hold(str(tmp_path / "started"), str(tmp_path / "gate")))
            its.give(long, lease_s=1000)
            its.give(its.attempt(Hold()), lease_s=500)
            assert len(its.executors[0].held) == 2
            assert fenced_for_s(its) == pytest.approx(500 + MARGIN_S, abs=10)
            await until(lambda: its.given_back, "the second one to be given back")
            await until(lambda: fenced_for_s(its) > 900, "the slot to be that of the first")
            (tmp_path / "gate").touch()
            await until(lambda: long.job in its.outcomes, "the end of the first")

    asyncio.run(scene())


def test_the_slot_of_a_dead_executor_is_not_its_successors(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, fence_margin_s=60.0) as its:
            its.hand_over(Hold(str(tmp_path / "started"), str(tmp_path / "never")))
            await until((tmp_path / "started").exists, "the run")
            os.kill(its.executors[0].pid, signal.SIGKILL)
            await until(lambda: its.outcomes, "the crash")
            assert fenced_for_s(its) == 0
            await its.run(Nothing())

    asyncio.run(scene())


def test_who_is_killed_past_its_deadline_has_lost_its_lease_and_did_not_crash(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1, fence_margin_s=0.05) as its:
            attempt = its.attempt(Hold(str(tmp_path / "started"), str(tmp_path / "never")))
            its.give(attempt, lease_s=0.5)
            await until(lambda: attempt.job in its.outcomes, "the fence to fall")
            (outcome,) = its.outcomes[attempt.job]
            assert (outcome.kind, outcome.code) == (OutcomeKind.INTERRUPTED, "lease_lost")
            await its.run(Nothing())

    asyncio.run(scene())
