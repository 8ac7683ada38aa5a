"""A hint that somebody made work due, so that an idle worker need not wait for its next poll.

Other processes are heard through the kernel: inotify tells when a page is added to the log's file. That is armed by who
looked for work and found none, and it tells once, so that a busy worker never pays for it::

    empty claim ── arm ─▶ (idle) ── a page is written ─▶ wake ─▶ claim ─▶ empty again: arm …

The first page is written before the commit. The answer to a wake must therefore be a claim under BEGIN IMMEDIATE, which
waits for the writer; a plain read would come too early. It may wake for nothing or not at all: polling stays the truth.
Where there is no inotify, only this process's own commits are heard.
"""

import contextlib
import ctypes
import functools
import os
import select
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runwick.runtime.forks import Forkable

_IN_MODIFY: Final = 0x002
_IN_CREATE: Final = 0x100
_IN_ONESHOT: Final = 0x80000000
_EVENTS_BYTES: Final = 4096


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


class Watch:
    """A kernel watch on one log's file, and the thread that waits for it.

    Args:
        log: the file, which need not exist.
        tell: called on that thread.
    """

    def __init__(self, log: Path, tell: Callable[[], None]) -> None:
        self._log = os.fsencode(log)
        self._directory = os.fsencode(log.parent)
        self._tell = tell
        self._armed = False
        self._events: Final[int] = _libc().inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        self._end: Final = os.eventfd(0)
        self._thread = threading.Thread(target=self._listen, name="runwick-sqlite-hint", daemon=True)
        self._thread.start()

    def arm(self) -> None:
        """Tell at the next page written."""
        if self._armed:
            return
        self._armed = True
        watch = _libc().inotify_add_watch
        if watch(self._events, self._log, _IN_MODIFY | _IN_ONESHOT) < 0:
            # There is no log: whoever writes first will create it.
            watch(self._events, self._directory, _IN_CREATE | _IN_ONESHOT)

    def close(self) -> None:
        """Stop the thread and the watch."""
        os.eventfd_write(self._end, 1)
        if self._thread is not threading.current_thread():
            self._thread.join()
        self.forget()

    def forget(self) -> None:
        """Close the descriptors; in a forked child that leaves the parent's watch alone."""
        for descriptor in (self._events, self._end):
            if descriptor >= 0:
                os.close(descriptor)

    def _listen(self) -> None:
        poll = select.poll()
        if self._events >= 0:
            poll.register(self._events, select.POLLIN)
        poll.register(self._end, select.POLLIN)
        while all(descriptor != self._end for descriptor, _ in poll.poll()):
            with contextlib.suppress(BlockingIOError):  # left-over events are one hint together
                while os.read(self._events, _EVENTS_BYTES):
                    pass
            self._armed = False
            self._tell()


class Hint(Forkable):
    """Who wants to be woken, and the watch that does it; that begins with the first of them and ends with `close`.

    Args:
        log: the file of the database's log.
    """

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log
        self._wakes: dict[object, Callable[[], None]] = {}
        self._watch: Watch | None = None
        self._guard = threading.Lock()

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake`, from any thread, at every hint; returns how to stop that."""
        subscription = object()
        self._wakes[subscription] = wake
        with self._guard:
            if self._watch is None and sys.platform == "linux":
                self._watch = Watch(self._log, self.tell)

        def stop() -> None:
            self._wakes.pop(subscription, None)

        return stop

    def arm(self) -> None:
        """Wake at the next page that anybody writes. To be called under the write lock by who looked for work and found
        none: then nothing can come between the look and the arming."""
        if self._watch is not None and self._wakes:
            self._watch.arm()

    def tell(self) -> None:
        """Wake everybody who asked for it."""
        for wake in list(self._wakes.values()):
            wake()

    def close(self) -> None:
        """Forget everybody and end the watch."""
        self._wakes.clear()
        with self._guard:
            watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def after_fork_in_child(self) -> None:
        self._guard = threading.Lock()
        self._wakes.clear()
        if self._watch is not None:
            self._watch.forget()
            self._watch = None
