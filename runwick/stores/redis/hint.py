"""A hint that somebody made work due or asked a worker for something, so that nobody need wait for the next poll.

The functions tell it (`PUBLISH`), the `listening` hears it. It may wake for nothing or not at all: polling stays the
truth.
"""

import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from runwick.runtime.forks import Forkable
from runwick.stores.redis.listening import Listener, Told


class _Sleeper(NamedTuple):
    wake: Callable[[], None]
    concerns: Callable[[str], bool]


class _Asked(NamedTuple):
    worker: bytes
    wake: Callable[[], None]


class Hint(Forkable):
    """Who wants to be woken, and the listener, which begins with the first of them and ends with `close`.

    Args:
        listen: begins to listen; it is given what to call with what is told.
    """

    def __init__(self, listen: Callable[[Callable[[Told], None]], Listener]) -> None:
        super().__init__()
        self._listen: Final = listen
        self._sleepers: dict[object, _Sleeper] = {}
        self._asked: dict[object, _Asked] = {}
        self._listener: Listener | None = None
        self._guard = threading.Lock()

    def subscribe(self, wake: Callable[[], None], concerns: Callable[[str], bool]) -> Callable[[], None]:
        """Call `wake`, from any thread, at every hint for an application that `concerns` says yes to; returns how to
        stop that."""
        subscription = object()
        self._sleepers[subscription] = _Sleeper(wake, concerns)
        self._begin_to_listen()

        def stop() -> None:
            self._sleepers.pop(subscription, None)

        return stop

    def subscribe_requests(self, worker: bytes, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake`, from any thread, when that worker is asked for something; returns how to stop that."""
        subscription = object()
        self._asked[subscription] = _Asked(worker, wake)
        self._begin_to_listen()

        def stop() -> None:
            self._asked.pop(subscription, None)

        return stop

    def _heard(self, told: Told) -> None:
        if told.worker is None:
            for sleeper in list(self._sleepers.values()):
                if told.application is None or sleeper.concerns(told.application):
                    sleeper.wake()
        if told.application is None or told.worker is not None:
            for asked in list(self._asked.values()):
                if told.worker in (None, asked.worker):
                    asked.wake()

    def _begin_to_listen(self) -> None:
        with self._guard:
            if self._listener is None:
                self._listener = self._listen(self._heard)

    def close(self) -> None:
        """Forget everybody and stop listening."""
        self._sleepers.clear()
        self._asked.clear()
        with self._guard:
            listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def after_fork_in_child(self) -> None:
        self._guard = threading.Lock()
        self._sleepers = {}
        self._asked = {}
        self._listener = None
