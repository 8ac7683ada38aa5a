"""SIGKILL of an executor at every crossing of the hand-off, its own and the parent's: what becomes of the run that it
was at, of those behind it, of the others, and of its place."""

import asyncio
import collections
import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from runwick.contracts.outcomes import Death, ErrorDetail, Outcome, OutcomeKind
from runwick_supervisor.events import EventKind
from tests.supervisor import strikes
from tests.supervisor.applications.deeds import Chat, Echo, Hold
from tests.supervisor.crew import ROOT, Crew, crew, open_descriptors, until

SUCCEEDED: Final = OutcomeKind.SUCCEEDED
CRASHED: Final = OutcomeKind.CRASHED


class Fate(NamedTuple):
    """What the run ends in at which its executor is killed."""

    kind: OutcomeKind
    phase: str | None = None
    """Of a crash: where the run stood, if it bears the begun mark."""
    lines: int = 0
    """Of a crash: how many it had logged."""


FATES: Final = {
    "handoff.taken": Fate(CRASHED),
    "handoff.measuring": Fate(CRASHED),
    "handoff.beginning": Fate(CRASHED),
    "handoff.logging": Fate(CRASHED, "handle"),
    "handoff.written": Fate(CRASHED, "close", 2),
    "handoff.answered": Fate(SUCCEEDED),
    "handoff.announcing": Fate(SUCCEEDED),
    "handoff.taking_back": Fate(CRASHED, "handle", 2),
    "handoff.collecting": Fate(SUCCEEDED),
}
AT_GO: Final = ("handoff.taken", "handoff.written", "handoff.answered", "handoff.announcing", "handoff.collecting")
"""Where an executor that is not ready yet comes, too."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where orders are left for the next zygote, its executors and this process."""
    monkeypatch.setenv("DEEDS_STRIKES", str(tmp_path))
    disobey = strikes.obey_as_parent(tmp_path)
    yield tmp_path
    disobey()


def crossings_in_the_source() -> collections.Counter[str]:
    sources = (ROOT / "supervisor" / "runwick_supervisor").glob("*.py")
    return collections.Counter(
        name for source in sources for name in re.findall(r"reach\(\s*\"(.+?)\"", source.read_text())
    )


def test_every_crossing_of_the_hand_off_has_its_row_and_its_killer() -> None:
    assert crossings_in_the_source() == dict.fromkeys(FATES, 1)
    assert set(FATES) == set(strikes.CROSSINGS)


@pytest.mark.parametrize("crossing", [crossing for crossing in FATES if crossing != "handoff.taking_back"])
def test_a_kill_costs_at_most_the_run_that_it_hits(crossing: str, folder: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its, a_bystander(its, folder):
            (pid,) = [executor.pid for executor in its.executors if not executor.held]
            order = strikes.order(folder, crossing)
            victim, *behind = its.hand_over(Chat(2, ""), Echo("next"), Echo("last"))
            assert sorted(len(executor.held) for executor in its.executors) == [1, 3]
            await struck(its, order, pid)
            await ended(its, victim, *behind)
            # Nobody may have had room in time for what had not begun: then it went back to where it came from.
            outcomes = its.outcomes.get(victim, [])
            assert outcomes or crossing == "handoff.announcing"
            for outcome in outcomes:
                judge(outcome, FATES[crossing])
            kinds = [outcome.kind for number in behind for outcome in its.outcomes.get(number, [])]
            # While the parent reads an answer, its executor may have taken the next one.
            crashes = kinds.count(CRASHED)
            assert crashes <= (crossing == "handoff.collecting")
            assert kinds.count(SUCCEEDED) == len(kinds) - crashes

    asyncio.run(scene())


def test_a_kill_while_the_parent_takes_back_costs_the_head_alone(folder: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its, a_bystander(its, folder):
            (pid,) = [executor.pid for executor in its.executors if not executor.held]
            order = strikes.order(folder, "handoff.taking_back")
            head = Chat(2, str(folder / "head"), str(folder / "never"))
            victim, *behind = its.hand_over(head, Echo("next"), Echo("last"))
            await struck(its, order, pid)
            await ended(its, victim, *behind)
            judge(its.outcomes[victim][0], FATES["handoff.taking_back"])
            assert all(outcome.kind is SUCCEEDED for number in behind for outcome in its.outcomes.get(number, []))

    asyncio.run(scene())


def test_an_answer_counts_although_its_executor_is_dead_when_it_is_read(folder: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            await its.make_known(Chat(2, ""))
            its.backend._bells._listen(False)  # as while everybody has enough to do
            order = strikes.order(folder, "handoff.answered")
            (number,) = its.hand_over(Chat(2, ""))
            await ended(its, number)
            assert not order.exists()
            judge(its.outcomes[number][0], FATES["handoff.answered"])
            its.backend._bells.look()

    asyncio.run(scene())


@pytest.mark.parametrize("crossing", AT_GO)
def test_a_kill_before_it_is_ready_costs_a_birth(crossing: str, folder: Path) -> None:
    order = strikes.order(folder, crossing)

    async def scene() -> None:
        async with crew(1) as its:
            await until(lambda: not order.exists(), "the kill")
            await until(lambda: its.executors and its.executors[0].is_ready, "an executor")
            await ended(its, *its.hand_over(Echo("here")))
            assert its.failures == []

    asyncio.run(scene())


def test_a_kill_when_it_was_told_to_end_is_an_end(folder: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            await its.run(Echo("before"))
            strikes.order(folder, "handoff.taken")
        assert its.failures == []
        assert all(event.attempt is None for event in its.heard(EventKind.EXECUTOR_DIED))

    asyncio.run(scene())
    assert not (folder / "handoff.taken").exists()


@contextlib.asynccontextmanager
async def a_bystander(its: Crew, folder: Path) -> AsyncIterator[None]:
    """One of two executors is busy all the time and ends well, the other one may be given several short runs; and as
    much is open afterwards as before."""
    for short in (Chat(2, ""), Echo("known")):
        await its.make_known(short)
    before = len(open_descriptors())
    started, end = folder / "bystander", folder / "bystander.end"
    (number,) = its.hand_over(Hold(str(started), str(end)))
    await until(started.exists, "the bystander")
    yield
    end.touch()
    await ended(its, number)
    assert its.outcomes[number][0].kind is SUCCEEDED
    await until(lambda: len(open_descriptors()) == before, "what was opened to be closed")


def judge(outcome: Outcome, fate: Fate) -> None:
    """Whether the run ended in that."""
    assert outcome.kind is fate.kind
    if fate.kind is SUCCEEDED:
        return
    assert outcome.code == "executor_crashed"
    assert outcome.error == ErrorDetail("signal", "killed by SIGKILL")
    assert outcome.death == Death("signal", 9, None, fate.phase)
    assert (outcome.begun_at_ms is None) == (outcome.usage is None) == (fate.phase is None)
    if outcome.usage is not None:
        assert outcome.usage.wall_us is not None
        assert outcome.usage.cpu_user_us is not None
    lines = outcome.black_box.lines if outcome.black_box is not None else ""
    assert [line.rpartition(": ")[2] for line in lines.splitlines()] == [f"line {at}" for at in range(fate.lines)]


async def struck(its: Crew, order: Path, pid: int) -> None:
    """Wait until the order is carried out and the place is taken by another one who is ready."""
    await until(lambda: not order.exists(), f"somebody to come to {order.name}")
    await until(
        lambda: len(its.executors) == 2 and all(one.is_ready and one.pid != pid for one in its.executors),
        "its heir",
    )


async def ended(its: Crew, *numbers: int) -> None:
    """Wait until each has ended or was given back."""
    await until(lambda: set(numbers) <= {*its.outcomes, *its.given_back}, f"{numbers} to end")
