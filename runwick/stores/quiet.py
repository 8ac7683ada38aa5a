"""Forks and the opening of connections keep out of each other's way.

While a connection is opened, OpenSSL takes locks of the whole process, for passwords too. A child that is forked
meanwhile by another thread inherits such a lock held, and stands still at its own first connection for ever.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from runwick.runtime.forks import Forkable

WAIT_MAX_S: Final = 10.0
"""How long a fork waits for those who are opening; a thread that forks while it opens would wait for itself."""


class Quiet(Forkable):
    """Any number of threads open at once; a fork waits for them, and whoever comes later waits for the fork."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Condition()
        self._opening = 0
        self._is_forking = False

    @contextlib.contextmanager
    def opening(self) -> Iterator[None]:
        """Open a connection within this block."""
        guard = self._guard
        with guard:
            guard.wait_for(lambda: not self._is_forking, WAIT_MAX_S)
            self._opening += 1
        try:
            yield
        finally:
            if guard is self._guard:  # a child that was forked in here has another
                with guard:
                    self._opening -= 1
                    guard.notify_all()

    def before_fork(self) -> None:
        self._guard.acquire()
        self._is_forking = True
        self._guard.wait_for(lambda: not self._opening, WAIT_MAX_S)

    def after_fork_in_parent(self) -> None:
        self._is_forking = False
        self._guard.notify_all()
        self._guard.release()

    def after_fork_in_child(self) -> None:
        self._guard = threading.Condition()
        self._opening = 0
        self._is_forking = False


quiet: Final = Quiet()
