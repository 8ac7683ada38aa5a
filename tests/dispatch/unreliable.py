"""A store whose calls fail as a test says. What is applied is applied by the real store inside."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from runwick import Runwick
from runwick.contracts.dispatching import Command, Receipt
from runwick.contracts.errors import ItemFailure
from runwick.contracts.revealing import AuditNote
from runwick.contracts.stores import Act, DispatchStore

T = TypeVar("T")


class Call(NamedTuple):
    """What becomes of one call; as it stands here, it is answered."""

    before: Callable[[], BaseException] | None = None
    """Raised although nothing was sent."""
    after: Callable[[], BaseException] | None = None
    """Raised although it was applied."""


class Unreliable:
    """Stands in front of a store.

    Args:
        store: the real one.
        calls: what becomes of the first calls; later ones are answered.
        behind_ms: how much this process's clock is behind, until it has met the store.
    """

    def __init__(self, store: DispatchStore, *calls: Call, behind_ms: int = 0) -> None:
        self._store = store
        self._calls = list(calls)
        self._behind_ms = behind_ms
        self.asked: list[str] = []
        """The acts that were sent, by name."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def now_ms(self) -> int:
        return self._store.now_ms() - self._behind_ms

    def dispatch(
        self, commands: Sequence[Command], *, continue_on_conflict: bool = False, note: AuditNote | None = None
    ) -> Act[list[Receipt | ItemFailure]]:
        return self._store.dispatch(commands, continue_on_conflict=continue_on_conflict, note=note)

    def run(self, act: Act[T]) -> T:
        call = self._next(act)
        if call.before:
            raise call.before()
        answer = self._store.run(act)
        if call.after:
            raise call.after()
        return answer

    async def run_async(self, act: Act[T]) -> T:
        await asyncio.sleep(0)
        return self.run(act)

    def _next(self, act: Act[Any]) -> Call:
        self._behind_ms = 0
        self.asked.append(act.name)
        return self._calls.pop(0) if self._calls else Call()


@contextmanager
def failing(rw: Runwick, *calls: Call, behind_ms: int = 0) -> Iterator[Unreliable]:
    """Let the calls of an application end so, for the length of the block."""
    store: Any = Unreliable(rw.store, *calls, behind_ms=behind_ms)
    with rw.store_replaced(store):
        yield store
