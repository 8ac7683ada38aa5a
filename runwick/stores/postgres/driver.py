"""One process's way to a PostgreSQL store: which thread and which connection an act gets.

::

    run          calling thread ──────────────────────────┐
    run_async    event loop ─▶ desk ─▶ one of its threads ┴▶ connection ─▶ performer ─▶ answer

No event loop ever waits for the server. Of jobs it knows nothing.
"""

import atexit
import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
from weakref import WeakSet

from runwick.config.options import PostgresOptions
from runwick.contracts.ambient import Clock
from runwick.contracts.stores import Act
from runwick.runtime.desk import Ended, Order
from runwick.runtime.forks import Forkable, notice
from runwick.runtime.place import in_executor
from runwick.stores.postgres import packed
from runwick.stores.postgres.address import Address
from runwick.stores.postgres.hint import Hint
from runwick.stores.postgres.history import History
from runwick.stores.postgres.listening import Listener
from runwick.stores.postgres.opening import Opening
from runwick.stores.postgres.performer import Performer
from runwick.stores.postgres.statements import sql
from runwick.stores.postgres.telling import Teller
from runwick.stores.postgres.works import Connections, Works

T = TypeVar("T")

PROFILE: Final = "postgres.synchronous-commit"
PROFILE_UNSAFE: Final = "postgres.unsafe"

_drivers: "WeakSet[Driver]" = WeakSet()


class Driver(Forkable):
    """One process's way to one store. It opens at its first use, also after `close` or a fork.

    Args:
        address: of the database.
        options: the limit of a call, and whether unsafe durability is accepted.
        concurrent_calls: how many calls of the application may be under way at once.
        clock: this process's.
        opened: called before each opening, after which the store may hold other things than before.
        statements: the text of a statement by its name.
    """

    def __init__(
        self,
        address: Address,
        options: PostgresOptions,
        *,
        concurrent_calls: int,
        clock: Clock,
        opened: Callable[[], None] = lambda: None,
        statements: Callable[[str], str] = sql,
    ) -> None:
        super().__init__()
        self._history = History(address.shown)
        self._opening = Opening(address, options, clock, self._history)
        self._concurrent_calls = concurrent_calls
        self._clock = clock
        self._opened = opened
        self._performer = Performer(self._opening, self._history, statements)
        self._works: Works | None = None
        self._guard = threading.Lock()
        self._hint = Hint(functools.partial(Listener, self._opening))
        self._teller = Teller(self._send_hint)
        _drivers.add(self)

    @property
    def store_id(self) -> bytes | None:
        """The identity of the store that was met first; None before that."""
        return self._history.store_id

    @property
    def profile(self) -> str:
        """The durability rule that the store was found to keep when it was opened last."""
        return PROFILE_UNSAFE if self._opening.is_unsafe else PROFILE

    def now_ms(self) -> int:
        """The store's time as far as this process knows it, without asking."""
        return self._clock.now_ms() + self._opening.offset_ms

    def run(self, act: Act[T]) -> T:
        """Run `act` on the calling thread.

        Raises:
            StoreError: nothing was written.
            OutcomeUnknown: it may or may not be applied.
        """
        return self._performer.perform(self._open().calls, act)

    async def run_async(self, act: Act[T]) -> T:
        """Run `act` on a thread of the driver's; raises what `run` raises.

        An executor has no other threads, and its event loop nothing else to do: it waits.
        """
        works = self._open()
        if in_executor():
            return self._performer.perform(works.calls, act)
        answer: T = await works.desk(act.name).call(act)
        return answer

    def check(self) -> tuple[str, ...]:
        """Open the store and check all that could refuse it.

        Returns:
            What the operator should know although nothing is refused.

        Raises:
            StoreError: with the code of what is wrong.
        """
        self._history.check()
        with self._open().calls() as connection:
            self._opening.examine(connection)
        return self._opening.notes

    def may_tell(self) -> bool:
        """Whether a transaction may tell other processes of work by itself: not if one has just done so."""
        return self._teller.may_ride()

    def notify(self, application: int, *, is_told: bool = False) -> None:
        """Hint that an application, by its number in the store, has work: to this process's workers at once, to others
        soon, if they were not told. It never fails; what gets lost is found by polling."""
        self._hint.wake(application)
        if not is_told:
            self._teller.tell(application)

    def wake_on_work(
        self, wake: Callable[[], None], concerns: Callable[[int], bool] = lambda application: True
    ) -> Callable[[], None]:
        """Call `wake`, from any thread, soon after somebody made work due for an application that `concerns` says yes
        to; returns how to stop that."""
        notice()
        return self._hint.subscribe(wake, concerns)

    def wake_on_requests(self, worker: bytes, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake`, from any thread, soon after somebody asked that worker for something; returns how to stop
        that."""
        notice()
        return self._hint.subscribe_requests(worker, wake)

    def close(self) -> None:
        """Send the hints that are left and close everything that is open. The next use opens it again."""
        self._teller.close()
        self._hint.close()
        with self._guard:
            works, self._works = self._works, None
        if works is not None:
            works.close()

    def after_fork_in_child(self) -> None:
        self._guard = threading.Lock()
        self._works = None  # its threads are the parent's

    def _open(self) -> Works:
        notice()
        works = self._works
        if works is None:
            with self._guard:
                if (works := self._works) is None:
                    self._opened()
                    works = self._works = Works(self._opening, self._concurrent_calls, self._perform_each)
        return works

    def _perform_each(self, connections: Connections, orders: Sequence[Order]) -> list[Ended]:
        return [self._ended(connections, order.task) if order.begin() else Ended() for order in orders]

    def _ended(self, connections: Connections, act: Act[Any]) -> Ended:
        try:
            return Ended(self._performer.perform(connections, act))
        except BaseException as error:  # also what stops a thread belongs to the caller
            return Ended(error=error)

    def _send_hint(self, applications: list[int]) -> None:
        with self._open().calls() as connection:
            connection.fetch(sql("notify").encode(), (packed.numbers(applications),))


@atexit.register
def _close_all() -> None:
    for driver in list(_drivers):
        with contextlib.suppress(Exception):
            driver.close()
