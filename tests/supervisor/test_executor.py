"""One executor as the parent sees it, the other end of its hand-off played by the test."""

import os
from collections.abc import Iterator

import pytest

from runwick.contracts.backends import Completion
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick_supervisor.executor import Executor
from runwick_supervisor.expectations import Expectations
from runwick_supervisor.fence import FenceMemory
from runwick_supervisor.handoff import RecordKind, encode_outcome
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
    played.executor.probe.close()
    os.close(played.executor.pidfd)
    played.ends.close()
    played.fence.close()


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
