"""How a connection to the store is opened: the server examined, and the store compared with what is known of it.

::

    connect ─▶ is the server fit? (`profile`) ─▶ is it a store of this release? ─▶ the same one? ─▶ its time

No connection is used before; so a server that was replaced, emptied or set unsafe is met here, after each loss of a
connection. Every refusal names the place without user or password, and says what to do.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

import redis.exceptions

from runwick.config.options import RedisOptions
from runwick.contracts.ambient import Clock
from runwick.contracts.errors import RunwickError, StoreProfileMismatch
from runwick.runtime.crossings import reach
from runwick.runtime.forks import Forkable
from runwick.stores.redis import faults
from runwick.stores.redis.address import Address
from runwick.stores.redis.connection import Connection
from runwick.stores.redis.history import History
from runwick.stores.redis.profile import Fitness, examine
from runwick.stores.redis.revision import REVISION

T = TypeVar("T")

EXAMINING: Final = "runwick-profile"

_STORE: Final = "rw:store"

_TRIP_MAX_MS: Final = 500


class Opening(Forkable):
    """How one store object opens connections, and what it learned from the last one.

    Args:
        address: of the database.
        options: the limit of a call.
        clock: this process's, which is compared with the store's.
        history: what is known of the store.
    """

    def __init__(self, address: Address, options: RedisOptions, clock: Clock, history: History) -> None:
        super().__init__()
        self.shown: Final = address.shown
        self.limit_s: Final = options.command_timeout.total_seconds()
        self.offset_ms = 0
        """The store's time less this process's; every answer tells it anew."""
        self._is_time_known = False
        self.looks = 0
        """How often the server was looked at."""
        self._address: Final = address
        self._clock: Final = clock
        self._history: Final = history
        self._fitness = Fitness((), None)
        self._has_passed = False
        self._looked_at_s = float("-inf")
        self._looking = threading.Lock()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the operator should know although nothing is refused."""
        return self._fitness.notes

    def check_fit(self) -> None:
        """Go on only with a server that was fit at the last look.

        Raises:
            StoreProfileMismatch: it was not; nothing was sent.
        """
        if (fault := self._fitness.fault) is not None:
            raise StoreProfileMismatch(fault.code, fault.message)

    def connect(self, purpose: str) -> Connection:
        """Open a connection.

        Raises:
            StoreError: there is none, or it is refused; the code says why.
        """
        connection = self._connected(purpose)
        try:
            self._look_since(time.monotonic())
            self.meet(connection)
        except BaseException:
            connection.close()
            raise
        reach("redis.opened")
        return connection

    def look(self) -> None:
        """Look at the server, on a connection of its own, and keep what it says: `check_fit` tells.

        Raises:
            StoreError: it could not be looked at; what was found before holds on.
        """
        with self._looking:
            self._look()

    def meet(self, connection: Connection) -> None:
        """Go on only with a store of this release, and with the same one as ever; learn its time.

        Raises:
            StoreNotInstalled: there is none.
            StoreRevisionMismatch: it is of another release.
            StoreHistoryBroken: it is another one, or there is none any more.
            StoreUnavailable: the server did not answer.
        """
        store_id, revision = self._asked(lambda: connection.ask("HMGET", _STORE, "id", "revision"))
        if store_id is None or revision is None:
            raise faults.not_installed(self.shown) if self._history.store_id is None else self._history.is_gone()
        if int(revision) != REVISION:
            raise faults.revision_mismatch(int(revision), self.shown)
        self._history.meet(store_id)
        asked_ms = self.own_ms()
        seconds, microseconds = self._asked(lambda: connection.ask("TIME"))
        self.learn_time(int(seconds) * 1000 + int(microseconds) // 1000, asked_ms, self.own_ms())

    def own_ms(self) -> int:
        """This process's time."""
        return self._clock.now_ms()

    def learn_time(self, store_ms: int, asked_ms: int, answered_ms: int) -> None:
        """Compare the store's time, which an answer told, with this process's when it asked and when it was answered.

        Half of what the answer took is the error; one that took long, or meanwhile the own clock was set, is passed by
        unless there is none yet.
        """
        if self._is_time_known and abs(answered_ms - asked_ms) > _TRIP_MAX_MS:
            return
        self.offset_ms = store_ms - (asked_ms + answered_ms) // 2
        self._is_time_known = True

    def _look_since(self, since_s: float) -> None:
        """Look, unless somebody has begun to since then. An unfit server is refused until it was found fit once."""
        with self._looking:
            if self._looked_at_s < since_s:
                self._look()
        if not self._has_passed:
            self.check_fit()

    def _look(self) -> None:
        self._looked_at_s = time.monotonic()
        self.looks += 1
        with contextlib.closing(self._connected(EXAMINING)) as connection:
            was_unfit = self._fitness.fault is not None
            self._fitness = self._asked(lambda: examine(connection.ask, self.shown, was_unfit=was_unfit))
        self._has_passed = self._has_passed or self._fitness.fault is None

    def _connected(self, purpose: str) -> Connection:
        try:
            return Connection(self._address, purpose, self.limit_s)
        except (redis.exceptions.RedisError, OSError) as error:
            raise faults.unreachable(error, self.shown) from error

    def _asked(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except redis.exceptions.RedisError as error:
            situation = faults.Situation("opening", self.shown, self.limit_s * 1000)
            if not faults.code_of(error):
                raise faults.unanswered(error, situation, writes=False) from error
            meant = faults.refused(error, situation, "")
            raise (meant if isinstance(meant, RunwickError) else faults.unreachable(error, self.shown)) from error

    def after_fork_in_child(self) -> None:
        self._looking = threading.Lock()
