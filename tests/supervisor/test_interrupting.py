"""Executors that are asked to stop: what the token says, what is interrupted, and which attempt is meant."""

import asyncio
import datetime
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.errors import JobCancelled
from runwick.contracts.outcomes import OutcomeKind
from runwick.execution.failures import Step
from runwick_supervisor.handoff import encode_outcome
from runwick_supervisor.interrupting import Interrupting, Token
from runwick_supervisor.signals import INTERRUPT
from tests.supervisor.applications.deeds import Doze, Echo, Endure, Heed
from tests.supervisor.crew import until
from tests.supervisor.single import single
from tests.supervisor.test_handoff import DONE, Ends

USER = CancellationCause.USER_REQUESTED
ONE_MS = datetime.timedelta(milliseconds=1)
LONG = datetime.timedelta(seconds=60)


class Attempts:
    """Stands for the invoker: raises in whatever it interrupts."""

    def __init__(self) -> None:
        self.asked: list[tuple[CancellationCause, bool]] = []
        self.takes_context = False

    def interrupt(self, causes: CancellationCause, *, insist: bool) -> None:
        self.asked.append((causes, insist))
        if insist or not self.takes_context:
            raise JobCancelled(causes)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    made.put(b"one")
    made.put(b"two")
    made.take()
    made.executor.control.begun()
    yield made
    made.close()


@pytest.fixture
def attempts(ends: Ends) -> Iterator[tuple[Interrupting, Attempts]]:
    before = signal.getsignal(INTERRUPT)
    attempts = Attempts()
    interrupting = Interrupting(ends.executor.control, ends.executor.cancel_bell)
    interrupting.listen(attempts)
    yield interrupting, attempts
    signal.signal(INTERRUPT, before)


def token(ends: Ends) -> Token:
    return Token(ends.executor.control, ends.executor.cancel_bell)


def test_a_token_shows_every_cause_as_it_comes(ends: Ends) -> None:
    its = token(ends)
    assert (its.is_set(), its.causes) == (False, CancellationCause(0))
    its.raise_if_set()
    assert not its.wait(ONE_MS)
    ends.parent.cancel(USER.value, insist=False)
    ends.parent.cancel(CancellationCause.SHUTDOWN.value, insist=False)
    assert its.causes == USER | CancellationCause.SHUTDOWN
    assert its.wait()
    with pytest.raises(JobCancelled) as raised:
        its.raise_if_set()
    assert raised.value.causes == USER | CancellationCause.SHUTDOWN


def test_every_thread_that_waits_is_woken(ends: Ends) -> None:
    its = token(ends)
    heard: list[bool] = []
    threads = [threading.Thread(target=lambda: heard.append(its.wait(LONG))) for _ in range(4)]
    for thread in threads:
        thread.start()
    ends.parent.cancel(USER.value, insist=False)
    for thread in threads:
        thread.join(20)
    assert heard == [True] * 4


def test_a_ring_that_meant_an_earlier_attempt_wakes_nobody(ends: Ends, attempts: tuple[Interrupting, Attempts]) -> None:
    ends.parent.cancel(USER.value, insist=False)
    earlier = token(ends)
    ends.executor.finish(encode_outcome(DONE))
    ends.take()
    its = attempts[0].token()
    assert not ends.executor.cancel_bell.take(), "it was taken when the next attempt began"
    ends.executor.cancel_bell.ring()
    assert not its.wait(ONE_MS)
    assert earlier.is_set(), "whoever kept the earlier one is told nothing new"


def test_a_token_works_although_its_doorbell_was_closed(ends: Ends) -> None:
    its = token(ends)
    kept = os.dup(ends.executor.cancel_bell.descriptor)
    os.close(ends.executor.cancel_bell.descriptor)
    try:
        assert not its.wait(ONE_MS)
        ends.parent.cancel(USER.value, insist=False)
        assert its.wait(LONG)
    finally:
        os.dup2(kept, ends.executor.cancel_bell.descriptor)
        os.close(kept)


def test_the_signal_interrupts_the_attempt_that_is_asked(ends: Ends, attempts: tuple[Interrupting, Attempts]) -> None:
    ends.parent.cancel(USER.value, insist=False)
    with pytest.raises(JobCancelled):
        signal.raise_signal(INTERRUPT)
    assert attempts[1].asked == [(USER, False)]
    assert ends.parent.progress().interrupted
    assert ends.parent.was_interrupted


def test_who_takes_its_context_is_interrupted_when_the_parent_insists(
    ends: Ends, attempts: tuple[Interrupting, Attempts]
) -> None:
    attempts[1].takes_context = True
    ends.parent.cancel(USER.value, insist=False)
    signal.raise_signal(INTERRUPT)
    assert not ends.parent.progress().interrupted
    ends.parent.cancel(USER.value, insist=True)
    with pytest.raises(JobCancelled):
        signal.raise_signal(INTERRUPT)
    assert attempts[1].asked == [(USER, False), (USER, True)]


def test_a_signal_that_comes_late_finds_another_attempt_and_changes_nothing(
    ends: Ends, attempts: tuple[Interrupting, Attempts]
) -> None:
    ends.parent.cancel(USER.value, insist=True)
    ends.executor.finish(encode_outcome(DONE))
    ends.take()
    signal.raise_signal(INTERRUPT)
    assert attempts[1].asked == []


def test_who_was_asked_before_it_began_is_interrupted_where_it_may_be(
    ends: Ends, attempts: tuple[Interrupting, Attempts]
) -> None:
    ends.parent.cancel(USER.value, insist=False)
    interrupting, its = attempts
    assert its.asked == []
    assert ends.parent.progress().phase == "decode"
    with pytest.raises(JobCancelled):
        interrupting.moved(Step.PROVIDE)
    assert ends.parent.progress().phase == "provide"
    interrupting.moved(Step.CLOSE)
    assert its.asked == [(USER, False)]


@pytest.mark.parametrize("how", ["python", "asleep"])
def test_a_handler_on_an_executor_is_interrupted_and_the_executor_goes_on(tmp_path: Path, how: str) -> None:
    async def scene() -> None:
        async with single() as its:
            its.put(Endure(how, str(tmp_path / "started"), str(tmp_path / "seen")))
            await until((tmp_path / "started").exists, "the run")
            assert its.end.progress().phase == "handle"
            its.ask(USER)
            outcome = await its.ended()
            assert (outcome.kind, outcome.code) == (OutcomeKind.CANCELLED, "cancel_requested")
            assert "JobCancelled" in (tmp_path / "seen").read_text()
            assert its.end.was_interrupted
            assert await its.result(Echo("still here")) == "still here"

    asyncio.run(scene())


def test_a_handler_that_takes_its_context_sees_the_token_and_may_still_succeed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single() as its:
            its.put(Heed(str(tmp_path / "started")))
            await until((tmp_path / "started").exists, "the run")
            its.ask(CancellationCause.SHUTDOWN)
            outcome = await its.ended()
            assert (outcome.kind, outcome.result) == (OutcomeKind.SUCCEEDED, b'"SHUTDOWN"')
            assert not its.end.was_interrupted

    asyncio.run(scene())


def test_an_async_handler_is_cancelled_on_its_loop(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single() as its:
            its.put(Doze(str(tmp_path / "started")))
            await until((tmp_path / "started").exists, "the run")
            its.ask(USER)
            outcome = await its.ended()
            assert (outcome.kind, outcome.code) == (OutcomeKind.CANCELLED, "cancel_requested")
            assert await its.result(Echo("still here")) == "still here"
            assert not its.end.was_interrupted, "its task was cancelled, and nothing torn"

    asyncio.run(scene())


def test_a_handler_in_c_is_asked_and_goes_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single() as its:
            its.put(Endure("in C", str(tmp_path / "started"), str(tmp_path / "seen")))
            await until((tmp_path / "started").exists, "the run")
            its.ask(USER, insist=True)
            await its.stack("in endure")
            assert its.end.progress().phase == "handle"
            await its.kill()
            assert not (tmp_path / "seen").exists()
            assert its.end.remains().progress.phase == "handle"

    asyncio.run(scene())
