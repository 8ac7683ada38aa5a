"""One executor as the parent sees it, the other end of its hand-off played by the test."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from runwick.contracts.backends import Completion
from runwick.contracts.limits import Fence
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.policies import JobPolicy
from runwick.execution.run import Run
from runwick_supervisor.executor import STUCK_MS, Executor
from runwick_supervisor.expectations import Expectations
from runwick_supervisor.fence import FenceMemory
from runwick_supervisor.handoff import RecordKind, encode_outcome, encode_run
from runwick_supervisor.held import Held
from tests.attempts import an_attempt
from tests.supervisor.test_handoff import Ends

FENCED_S = 10**9
"""A moment that the tests do not live to see."""


class Played:
    """An executor that is ready, and its other end."""

    def __init__(self) -> None:
        self.ends = Ends()
        self.fence = FenceMemory.create()
        kinds = frozenset({an_attempt().kind})
        self.executor = Executor(1, os.getpid(), os.pidfd_open(os.getpid()), self.ends.parent, self.fence, kinds)
        self.executor.go()
        self.answer(Outcome(OutcomeKind.SUCCEEDED))
        assert self.collected() == []
        assert self.executor.takes_work

    def close(self) -> None:
        self.executor.probe.close()
        os.close(self.executor.pidfd)
        self.ends.close()
        self.fence.close()

    def answer(self, outcome: Outcome) -> None:
        self.ends.executor.take(1, lambda: None)
        self.ends.executor.finish(encode_outcome(outcome))

    def collected(self) -> list[Completion]:
        ended: list[Completion] = []
        self.executor.collect(ended, Expectations(), 0.0)
        return ended

    def put(self, *numbers: int) -> None:
        for number in numbers:
            assert self.executor.put(Held(an_attempt(number), 0.0, FENCED_S), 0.0)
        self.executor.announce()


@pytest.fixture
def played() -> Iterator[Played]:
    played = Played()
    yield played
    played.close()


def test_what_is_taken_back_is_what_it_has_not_taken(played: Played) -> None:
    played.put(1, 2, 3)
    played.ends.take()
    assert [held.attempt.job for held in played.executor.take_back()] == [2, 3]
    assert [held.attempt.job for held in played.executor.held] == [1]


def test_the_word_to_stop_is_never_taken_back_for_a_run(played: Played) -> None:
    played.put(1, 2)
    played.executor.stop()
    assert played.executor.take_back() == []
    for _ in range(2):
        played.answer(Outcome(OutcomeKind.SUCCEEDED))
    kind, _, _ = played.ends.executor.take(1, lambda: None)
    assert kind == RecordKind.STOP
    assert [completion.attempt.job for completion in played.collected()] == [1, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "execution": 3,
            "generation": 2,
            "policy": JobPolicy(max_executions=7, error_detail="message"),
            "metadata": b'{"a": "b"}',
            "tenant": "north",
            "traceparent": "00-1-2-01",
            "tracestate": "x=y",
            "fences": (Fence("ledger", 4),),
        },
    ],
)
def test_what_crosses_is_the_run_that_the_attempt_asks_for(changes: dict[str, Any]) -> None:
    attempt = an_attempt(**changes)
    assert Run.decode(encode_run(attempt)) == Run.of(attempt)


def test_what_is_left_counts_how_long_the_head_has_run_but_an_overdue_head_makes_no_room(played: Played) -> None:
    for number in (1, 2):
        held = Held(an_attempt(number), 0.0, FENCED_S)
        held.expect(20.0)
        assert played.executor.put(held, 100.0)
    played.executor.announce()

    def figures(now_s: float) -> list[float]:
        executor = played.executor
        return [executor.left_ms(now_s), executor.load_ms(now_s), executor.head_left_ms(now_s)]

    assert figures(100.0) == pytest.approx([40, 40, 20])
    assert figures(100.015) == pytest.approx([25, 25, 5])
    assert figures(100.021) == pytest.approx([19, 40, 0]), "the head may still take long: that makes no room for more"
    assert figures(100.5) == pytest.approx([0, 40, 0])


def test_the_head_has_run_since_its_executor_began_it_and_not_since_somebody_looked(played: Played) -> None:
    for number in (1, 2):
        held = Held(an_attempt(number), 0.0, FENCED_S)
        held.expect(20_000.0)
        assert played.executor.put(held, 100.0)
    played.executor.announce()
    played.answer(Outcome(OutcomeKind.SUCCEEDED))
    played.ends.take()
    played.ends.executor.control.begun()
    begun_s = time.monotonic()
    assert played.collected() != []
    assert played.executor.head_left_ms(0.0) == pytest.approx(20_000, abs=1_000 * (time.monotonic() - begun_s) + 1)


def test_a_head_that_is_heard_late_is_overdue_and_stuck_by_when_it_began(played: Played) -> None:
    """Its predecessor's end is heard 80 ms after the head began: neither its time limit nor the patience with it begins
    then."""
    limited = an_attempt(2, policy=JobPolicy(execution_timeout_ms=100))
    for attempt in (an_attempt(1), limited, an_attempt(3)):
        held = Held(attempt, 0.0, FENCED_S)
        held.expect(5.0)
        assert played.executor.put(held, 0.0)
    played.executor.announce()
    played.answer(Outcome(OutcomeKind.SUCCEEDED))
    played.ends.take()
    played.ends.executor.control.begun()
    began_s = time.monotonic()
    while time.monotonic() - began_s < 0.08:
        pass
    assert len(played.collected()) == 1
    late_s = time.monotonic() - began_s
    assert played.executor.limit_s(0.0) <= 0.1 - 0.08
    assert late_s >= STUCK_MS / 1000
    assert played.executor.is_blocked(0.0)
