"""Runs acts on one SQLite file, each in one transaction.

::

    run          calling thread ──────────────────┐
    run_async    event loop ─▶ desk ─▶ its writer ┴▶ turnstile ─▶ writing connection    BEGIN IMMEDIATE … COMMIT
                                  └──▶ its readers ─────────────▶ reading connections   BEGIN … COMMIT

The writer takes all acts that wait and commits them together, so that they share one sync to disk; when anything goes
wrong among them, each is run again by itself and gets its own answer. No event loop ever waits inside SQLite. The
driver knows nothing of jobs: an act's steps name statements; it executes them and sends the rows back.
"""

import atexit
import contextlib
import functools
import queue
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakSet

from runwick.config.options import SqliteOptions
from runwick.contracts.errors import OutcomeUnknown, StoreUnavailable
from runwick.contracts.stores import Act
from runwick.runtime.crossings import reach
from runwick.runtime.desk import Ended, Order
from runwick.runtime.forks import Forkable, notice
from runwick.stores.sqlite import faults
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.link import Link
from runwick.stores.sqlite.statements import sql
from runwick.stores.sqlite.turnstile import turnstiles
from runwick.stores.sqlite.works import Works
from runwick.stores.steps import Step

T = TypeVar("T")

_NUMBERS_ARE_NAMES: Final = (3, 12) <= sys.version_info < (3, 12, 4)
"""These releases of Python warn of ``?1`` with a sequence, as if it were a named parameter."""

_HOLD_MAX_S: Final = 0.01
"""A transaction takes no further act once it has held the write lock for so long."""

_drivers: "WeakSet[Driver]" = WeakSet()


class Driver(Forkable):
    """One process's way to one store file. It opens at its first use, also after `close` or a fork.

    Args:
        path: absolute.
        options: how long to wait for the write lock, how many readers.
        gate: what every transaction meets before its act.
        ends_transaction: asked after each act, whether its transaction must take no further one.
        opens: called before each opening, after which another file may stand there.
    """

    def __init__(
        self,
        path: Path,
        options: SqliteOptions,
        gate: Gate,
        ends_transaction: Callable[[], bool] = lambda: False,
        opens: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self.path: Final = path
        self._wait_s = options.writer_busy_timeout.total_seconds()
        self._reader_threads = options.reader_threads
        self._gate = gate
        self._ends_transaction = ends_transaction
        self._opens = opens
        self._works: Works | None = None
        self._guard = threading.Lock()
        _drivers.add(self)

    def run(self, act: Act[T]) -> T:
        """Run `act` on the calling thread.

        Raises:
            StoreError: nothing was written.
            OutcomeUnknown: the commit's answer was lost.
        """
        works = self._open()
        if act.reads_only:
            return self._read(works, act)
        answer = self._write(works, act)
        works.checkpoints.after_commit()
        return answer

    async def run_async(self, act: Act[T]) -> T:
        """Run `act` on a thread of the driver's; raises what `run` raises."""
        works = self._open()
        desk = works.readers if act.reads_only else works.writer
        answer: T = await desk.call(act)
        return answer

    def check(self) -> tuple[str, ...]:
        """Open the store and check all that could refuse it.

        Returns:
            What the operator should know although nothing is refused.

        Raises:
            StoreError: with the code of what is wrong.
        """
        works = self._open()
        try:
            with works.writing as connection:
                self._gate.enter(connection, writes=False)
        except sqlite3.Error as error:
            self._raise_before_commit(error, None)
            raise
        return works.notes

    def calm(self) -> None:
        """Say, from within an act, that it found nothing to do; the log is emptied after it."""
        if self._works is not None:
            self._works.checkpoints.calm()

    def close(self) -> None:
        """Close everything that is open. The next use opens it again."""
        with self._guard:
            works, self._works = self._works, None
        if works is not None:
            works.close()

    def after_fork_in_child(self) -> None:
        self._guard = threading.Lock()
        if self._works is not None:
            turnstiles.give_back(self._works.turnstile)
            self._works = None  # its threads are the parent's

    def _open(self) -> Works:
        notice()
        works = self._works
        if works is None:
            with self._guard:
                if (works := self._works) is None:
                    self._opens()
                    works = self._works = Works(
                        self.path, self._wait_s, self._reader_threads, self._write_together, self._read_each
                    )
        return works

    def _write(self, works: Works, act: Act[T]) -> T:
        with self._transaction(works, act.name, act) as connection:
            return self._drive(connection, act)

    def _write_together(self, works: Works, orders: Sequence[Order]) -> list[Ended]:
        """Run several acts in one transaction; if that fails, each in its own."""
        answers: list[Ended] = []
        while len(answers) < len(orders):
            rest = orders[len(answers) :]
            together: list[Ended] = []
            try:
                if len(rest) > 1:
                    self._write_some(works, rest, together)
                else:
                    together.append(self._write_alone(works, rest[0]))
            except OutcomeUnknown as error:
                together = [Ended(error=error) for _ in together]
            except Exception:
                together = [self._write_alone(works, order) for order in rest]
            answers += together
        return answers

    def _write_some(self, works: Works, orders: Sequence[Order], answers: list[Ended]) -> None:
        """Run as many of these acts, from the first on, as fit into one transaction; fills `answers`.

        A transaction that has held the write lock for 10 ms ends, so that other processes get in.
        """
        names = ", ".join(order.task.name for order in orders)
        with self._transaction(works, names, None) as connection:
            until_s = time.monotonic() + _HOLD_MAX_S
            for order in orders:
                answers.append(Ended(self._drive(connection, order.task)) if order.begin() else Ended())
                if self._ends_transaction() or time.monotonic() >= until_s:
                    break

    def _write_alone(self, works: Works, order: Order) -> Ended:
        return _ended(functools.partial(self._write_ordered, works, order))

    def _write_ordered(self, works: Works, order: Order) -> Any:
        """A caller can withdraw its order as long as the write lock is waited for."""
        with self._transaction(works, order.task.name, order.task) as connection:
            return self._drive(connection, order.task) if order.begin() else None

    @contextlib.contextmanager
    def _transaction(self, works: Works, names: str, act: Act[Any] | None) -> Iterator[sqlite3.Connection]:
        """A writing transaction at the turnstile; committed at the end of the block, rolled back when it raises.

        Raises:
            StoreError: nothing was written.
            OutcomeUnknown: the commit's answer was lost.
        """
        if not works.writing.is_open:
            with works.writing:
                pass  # a refusal comes before the turnstile makes its file
        with works.turnstile.turn(self._wait_s) as left_s, works.writing as connection:
            committing = False
            try:
                self._begin_immediate(connection, left_s)
                self._gate.enter(connection, writes=True)
                yield connection
                committing = True
                connection.execute("COMMIT")
                reach("sqlite.committed")
            except BaseException as error:
                _roll_back(works.writing, connection)
                if committing and isinstance(error, Exception):
                    raise faults.at_commit(error, names, self.path, self._wait_s) from error
                self._raise_before_commit(error, act)
                raise

    def _read_each(self, works: Works, orders: Sequence[Order]) -> list[Ended]:
        return [
            _ended(functools.partial(self._read, works, order.task)) if order.begin() else Ended() for order in orders
        ]

    def _read(self, works: Works, act: Act[T]) -> T:
        try:
            link = works.idle_readers.get(timeout=self._wait_s)
        except queue.Empty:
            raise StoreUnavailable(
                "store_unavailable",
                f"no reading connection of {self.path} came free in {self._wait_s * 1000:.0f} ms; nothing was read; "
                "read less at once, or raise reader_threads",
            ) from None
        try:
            with link as connection:
                try:
                    connection.execute("BEGIN")
                    self._gate.enter(connection, writes=False)
                    answer = self._drive(connection, act)
                    connection.execute("COMMIT")
                    return answer
                except BaseException as error:
                    _roll_back(link, connection)
                    self._raise_before_commit(error, act)
                    raise
        finally:
            works.idle_readers.put(link)

    def _begin_immediate(self, connection: sqlite3.Connection, left_s: float) -> None:
        """Take the write lock; SQLite waits for it as long as the turnstile left."""
        if left_s > 0.9 * self._wait_s:
            connection.execute("BEGIN IMMEDIATE")
            return
        connection.execute(f"PRAGMA busy_timeout = {left_s * 1000:.0f}")
        try:
            connection.execute("BEGIN IMMEDIATE")
        finally:
            connection.execute(f"PRAGMA busy_timeout = {self._wait_s * 1000:.0f}")

    def _drive(self, connection: sqlite3.Connection, act: Act[T]) -> T:
        steps = act.steps()
        try:
            step = next(steps)
            while True:
                step = steps.send(_execute(connection, step))
        except StopIteration as end:
            answer: T = end.value
            return answer
        finally:
            steps.close()

    def _raise_before_commit(self, error: BaseException, act: Act[Any] | None) -> None:
        """Raise what `error` means, if it means something else to the caller."""
        if isinstance(error, (sqlite3.Error, *faults.UNBINDABLE)):
            meant = faults.before_commit(error, act.name if act else "", self.path, self._wait_s)
            if meant is not error:
                raise meant from error


def _ended(work: Callable[[], Any]) -> Ended:
    try:
        return Ended(work())
    except BaseException as error:  # also what stops a thread belongs to the caller
        return Ended(error=error)


def _execute(connection: sqlite3.Connection, step: Step) -> Any:
    text, parameters = sql(step.statement), step.parameters
    if _NUMBERS_ARE_NAMES and "?1" in text:
        parameters = [_by_name(values) for values in parameters] if step.many else _by_name(parameters)
    if step.many:
        return connection.executemany(text, parameters).rowcount
    return connection.execute(text, parameters).fetchall()


def _by_name(values: Any) -> dict[str, Any]:
    return {str(number): value for number, value in enumerate(values, 1)}


def _roll_back(link: Link, connection: sqlite3.Connection) -> None:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        link.drop()


@atexit.register
def _close_all() -> None:
    for driver in list(_drivers):
        with contextlib.suppress(Exception):
            driver.close()
