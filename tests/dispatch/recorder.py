"""A store that keeps what it is asked to dispatch and answers what a test says."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from runwick import ItemFailure, Receipt, ReceiptDisposition, Runwick
from runwick.contracts.dispatching import Command
from runwick.contracts.stores import Act, T

NOW_MS = 1_750_000_000_000

Answers = list[Receipt | ItemFailure]


class Recorder:
    """Confirms every dispatch, unless `answers` or `error` say something else."""

    profile = "recorder"
    store_id = None

    def __init__(self) -> None:
        self.sent: list[tuple[Command, ...]] = []
        self.goes_on: list[bool] = []
        """`continue_on_conflict` of each call."""
        self.answers: Answers | None = None
        self.error: Exception | None = None

    def now_ms(self) -> int:
        return NOW_MS

    def dispatch(self, commands: Sequence[Command], *, continue_on_conflict: bool = False) -> Act[Answers]:
        def steps() -> Generator[Any, Any, Answers]:
            self.sent.append(tuple(commands))
            self.goes_on.append(continue_on_conflict)
            if self.error is not None:
                raise self.error
            return self.answers if self.answers is not None else [self._created(command) for command in commands]
            yield  # it asks nobody

        return Act("dispatch", steps)

    def run(self, act: Act[T]) -> T:
        try:
            next(act.steps())
        except StopIteration as end:
            answer: T = end.value
            return answer
        raise AssertionError("a recorder asks nobody")

    async def run_async(self, act: Act[T]) -> T:
        return self.run(act)

    def _created(self, command: Command) -> Receipt:
        return Receipt(command.job_id, command.operation_id, ReceiptDisposition.CREATED, self.profile)


@contextmanager
def recording(rw: Runwick) -> Iterator[Recorder]:
    """Let the application dispatch into a recorder, for the length of the block."""
    recorder = Recorder()
    store: Any = recorder
    with rw.store_replaced(store):
        yield recorder
