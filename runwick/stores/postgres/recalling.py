"""Makes up for calls that acts owe to limits they left idle.

Whoever holds the row of a job that could be called may be waiting for the limit itself, so that no act can wait for the
row. As a rule it is free within milliseconds; so a thread asks again soon, with a short act of its own::

    an act could call nobody ──▶ owe ──▶ 5 ms ──▶ call ─┬─ nobody, or not all ──▶ 10 ms ──▶ call ──▶ … 2.56 s ──▶ left
                                                        ├─ some, and more are owed ──▶ at once             to the pass
                                                        └─ all, or there is no room, or no line

An executor has no threads: there, the next act's caller makes up for it. What a process owes that ends is left to the
recovery pass as well, which looks at every line.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from runwick.runtime.forks import Forkable
from runwick.runtime.place import in_executor

_FIRST_S: Final = 0.005
_LAST_S: Final = 2.56
_END_S: Final = 5.0
"""How long `close` waits for a call that is under way."""


class _Debt:
    """What one limit is owed."""

    __slots__ = ("calls", "due_s", "pause_s")

    def __init__(self, calls: int, pause_s: float, due_s: float) -> None:
        self.calls = calls
        self.pause_s = pause_s
        self.due_s = due_s


class Recaller(Forkable):
    """Remembers what is owed. Its thread starts with the first debt and ends with `close`.

    Args:
        call: calls in for a limit what it is owed; answers how many were called, and how many are owed still (None: it
            is not idle any more). It may raise.
    """

    def __init__(self, call: Callable[[bytes, int], tuple[int, int | None]]) -> None:
        super().__init__()
        self._call = call
        self._debts: dict[bytes, _Debt] = {}
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def owe(self, owed: Mapping[bytes, int]) -> None:
        """These limits are owed so many calls. Returns at once."""
        with self._news:
            for limit, calls in owed.items():
                self._add(limit, calls, _FIRST_S, time.monotonic() + _FIRST_S)
            if self._thread is None and not in_executor():
                self._thread = threading.Thread(target=self._live, name="runwick-postgres-recaller", daemon=True)
                with contextlib.suppress(RuntimeError):  # the interpreter is ending
                    self._thread.start()
            self._news.notify()

    def make_up(self) -> None:
        """Call for what is due now, on the calling thread; an executor says so after each of its acts."""
        while (limit := self._next(time.monotonic())) is not None:
            self._again(limit)

    def close(self) -> None:
        """End the thread, and forget what is owed. The next debt starts another."""
        with self._news:
            thread, self._thread = self._thread, None
            self._debts.clear()
            self._news.notify()
        if thread is not None and thread.is_alive():
            thread.join(_END_S)

    def after_fork_in_child(self) -> None:
        self._debts = {}  # the parent makes up for these
        self._news = threading.Condition()
        self._thread = None

    def _live(self) -> None:
        itself = threading.current_thread()
        while True:
            with self._news:
                while (limit := self._next(time.monotonic())) is None and self._thread is itself:
                    due_s = min((debt.due_s for debt in self._debts.values()), default=None)
                    self._news.wait(None if due_s is None else max(0.0, due_s - time.monotonic()))
            if self._thread is not itself or limit is None:
                return
            self._again(limit)

    def _next(self, now_s: float) -> bytes | None:
        """A limit that is due."""
        return next((limit for limit, debt in tuple(self._debts.items()) if debt.due_s <= now_s), None)

    def _again(self, limit: bytes) -> None:
        with self._news:
            debt = self._debts.pop(limit, None)
        if debt is None:
            return
        called, owed = 0, debt.calls
        with contextlib.suppress(Exception):
            called, still = self._call(limit, debt.calls)
            if still is None:
                return
            owed = still
        pause_s = _FIRST_S if called else 2 * debt.pause_s
        if pause_s <= _LAST_S:
            with self._news:
                self._add(limit, owed, pause_s, time.monotonic() + (0.0 if called else pause_s))

    def _add(self, limit: bytes, calls: int, pause_s: float, due_s: float) -> None:
        debt = self._debts.setdefault(limit, _Debt(0, pause_s, due_s))
        debt.calls += calls
        debt.pause_s = min(debt.pause_s, pause_s)
        debt.due_s = min(debt.due_s, due_s)
