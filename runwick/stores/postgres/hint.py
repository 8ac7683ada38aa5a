"""A hint that somebody made work due, so that an idle worker need not wait for its next poll.

This process's workers are woken directly; others hear through the server (`telling`, `listening`). It may wake for
nothing or not at all: polling stays the truth.
"""

import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from runwick.runtime.forks import Forkable
from runwick.stores.postgres.listening import Listener


class _Sleeper(NamedTuple):
    wake: Callable[[], None]
    concerns: Callable[[int], bool]


class Hint(Forkable):
    """Who wants to be woken, and the listener, which begins with the first of them and ends with `close`.

    Args:
        listen: begins to listen; it is given what to call with the number of an application, or None for any.
    """

    def __init__(self, listen: Callable[[Callable[[int | None], None]], Listener]) -> None:
        super().__init__()
        self._listen: Final = listen
        self._sleepers: dict[object, _Sleeper] = {}
        self._listener: Listener | None = None
        self._guard = threading.Lock()

    def subscribe(self, wake: Callable[[], None], concerns: Callable[[int], bool]) -> Callable[[], None]:
        """Call `wake`, from any thread, at every hint for an application that `concerns` says yes to; returns how to
        stop that."""
        subscription = object()
        self._sleepers[subscription] = _Sleeper(wake, concerns)
        with self._guard:
            if self._listener is None:
                self._listener = self._listen(self.wake)

        def stop() -> None:
            self._sleepers.pop(subscription, None)

        return stop

    def wake(self, application: int | None) -> None:
        """Wake those whom work of this application concerns; None wakes everybody."""
        for sleeper in list(self._sleepers.values()):
            if application is None or sleeper.concerns(application):
                sleeper.wake()

    def close(self) -> None:
        """Forget everybody and stop listening."""
        self._sleepers.clear()
        with self._guard:
            listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def after_fork_in_child(self) -> None:
        self._guard = threading.Lock()
        self._sleepers = {}
        if self._listener is not None:
            self._listener.forget()
            self._listener = None
