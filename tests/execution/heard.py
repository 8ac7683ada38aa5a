"""A backend's sink for tests, on the loop that the backend was started on."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from runwick.contracts.activity import StackAnswer
from runwick.contracts.attempts import Attempt
from runwick.contracts.backends import Completion
from runwick.contracts.cancelling import CancellationCause
from tests.attempts import an_attempt

DEADLINE_S = 10
FAR_S = float("inf")
"""A lease that does not run out."""


def attempts(*numbers: int) -> list[Attempt]:
    """Attempts whose payloads say their number."""
    return [an_attempt(number, payload=b'{"pages":%d}' % number) for number in numbers]


class Heard:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.completions: list[Completion] = []
        self.released: list[Attempt] = []
        self.given_up: list[Attempt] = []
        self.overdue: list[tuple[Attempt, CancellationCause]] = []
        self.stacks: list[StackAnswer] = []
        self.changes = 0
        self._news = asyncio.Event()

    def completed(self, completions: Sequence[Completion]) -> None:
        self.completions += completions
        self._news.set()

    def unstarted(self, attempts: Sequence[Attempt]) -> None:
        self.released += attempts

    def gave_up(self, attempts: Sequence[Attempt]) -> None:
        self.given_up += attempts
        self._news.set()

    def asked(self, attempt: Attempt, cause: CancellationCause) -> None:
        self.overdue.append((attempt, cause))

    def looked(self, answer: StackAnswer) -> None:
        self.stacks.append(answer)

    def room_changed(self) -> None:
        self.changes += 1

    def failed(self, reason: str) -> None:
        pytest.fail(reason)

    async def until_completed(self, count: int) -> list[Completion]:
        await self._until(lambda: len(self.completions) >= count)
        return self.completions

    async def until_given_up(self, count: int) -> list[Attempt]:
        await self._until(lambda: len(self.given_up) >= count)
        return self.given_up

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                self._news.clear()
                await self._news.wait()
