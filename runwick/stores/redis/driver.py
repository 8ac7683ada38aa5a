"""One process's way to a Redis store: which thread and which connection an act gets.

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
from typing import Any, TypeVar
from weakref import WeakSet

from runwick.config.options import RedisOptions
from runwick.contracts.ambient import Clock
from runwick.contracts.stores import Act
from runwick.runtime.desk import Ended, Order
from runwick.runtime.forks import Forkable, notice
from runwick.runtime.place import in_executor
from runwick.stores.redis.address import Address
from runwick.stores.redis.hint import Hint
from runwick.stores.redis.history import History
from runwick.stores.redis.library import Library
from runwick.stores.redis.listening import Listener
from runwick.stores.redis.opening import Opening
from runwick.stores.redis.performer import Performer
from runwick.stores.redis.profile import Watch
from runwick.stores.redis.works import Connections, Works

T = TypeVar("T")

_drivers: "WeakSet[Driver]" = WeakSet()


class Driver(Forkable):
    """One process's way to one store. It opens at its first use, also after `close` or a fork.

    Args:
        address: of the database.
        options: the limit of a call, and how often the server is examined.
        concurrent_calls: how many calls of the application may be under way at once.
        clock: this process's.
        library: the functions.
    """

    def __init__(
        self, address: Address, options: RedisOptions, *, concurrent_calls: int, clock: Clock, library: Library
    ) -> None:
        super().__init__()
        self._history = History(address.shown)
        self._opening = Opening(address, options, clock, self._history)
        self._concurrent_calls = concurrent_calls
        self._clock = clock
        self._performer = Performer(self._opening, self._history, library)
        self._watch = Watch(self._opening.look, options.profile_recheck_interval.total_seconds())
        self._works: Works | None = None
        self._guard = threading.Lock()
        self._hint = Hint(functools.partial(Listener, self._opening))
        _drivers.add(self)

    @property
    def store_id(self) -> bytes | None:
        """The identity of the store that was met first; None before that."""
        return self._history.store_id

    def now_ms(self) -> int:
        """The store's time as far as this process knows it, without asking."""
        return self._clock.now_ms() + self._opening.offset_ms

    def run(self, act: Act[T]) -> T:
        """Run `act` on the calling thread.

        Raises:
            StoreError: nothing was written.
            OutcomeUnknown: it may or may not be applied.
        """
        works = self._open()
        if in_executor():
            self._watch.look_if_due()
        return self._performer.perform(works.calls, act)

    async def run_async(self, act: Act[T]) -> T:
        """Run `act` on a thread of the driver's; raises what `run` raises.

        An executor has no other threads, and its event loop nothing else to do: it waits.
        """
        if in_executor():
            return self.run(act)
        answer: T = await self._open().desk(act.name).call(act)
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
            self._opening.meet(connection)
        self._opening.look()
        self._opening.check_fit()
        return self._opening.notes

    def wake_on_work(
        self, wake: Callable[[], None], concerns: Callable[[str], bool] = lambda application: True
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
        """Close everything that is open. The next use opens it again."""
        self._hint.close()
        with self._guard:
            works, self._works = self._works, None
            self._watch.close(self._opening.limit_s)
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
                    works = self._works = Works(self._opening, self._concurrent_calls, self._perform_each)
                    if not in_executor():
                        self._watch.start()
        return works

    def _perform_each(self, connections: Connections, orders: Sequence[Order]) -> list[Ended]:
        return [self._ended(connections, order.task) if order.begin() else Ended() for order in orders]

    def _ended(self, connections: Connections, act: Act[Any]) -> Ended:
        try:
            return Ended(self._performer.perform(connections, act))
        except BaseException as error:  # also what stops a thread belongs to the caller
            return Ended(error=error)


@atexit.register
def _close_all() -> None:
    for driver in list(_drivers):
        with contextlib.suppress(Exception):
            driver.close()
