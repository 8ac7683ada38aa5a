"""A courtesy among writers, so that one that writes without pause lets the others in between.

SQLite's write lock has no queue: who waits for it sleeps and tries again, and a process that writes back to back takes
it every time. The turnstile is two record locks on a file of its own beside the database::

    writer A   door ─ inside ─ open the door ─ BEGIN IMMEDIATE … COMMIT ─ leave ─┐ comes again: the door is held
                                                                                 ▼
    writer B        door (held while it waits) ················ inside ─ open the door ─ BEGIN IMMEDIATE …

Who holds the door is next, because nobody else can come as far as `inside`. Within a process the threads stand in line,
first come, first served. A third lock is the checkpoint's.

The locks belong to the process and are not inherited by a fork. They protect nothing: who waited long enough goes
ahead without them, and SQLite's own lock decides.
"""

import collections
import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from runwick.contracts.errors import StoreUnavailable
from runwick.runtime.forks import Forkable

_DOOR: Final = 0
_INSIDE: Final = 1
_CHECKPOINT: Final = 2

_PAUSE_FIRST_S: Final = 0.0002
_PAUSE_MAX_S: Final = 0.001

_IMPATIENCE_S: Final = 0.05
"""How long the next one waits after a wait that was in vain: whoever holds a lock may have been stopped with it."""

LEFT_MIN_S: Final = 0.1
"""What SQLite's own lock is waited for at least, however long the turnstile took."""


class Line:
    """A lock that is passed on in the order in which it was asked for."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: collections.deque[threading.Lock] = collections.deque()

    def acquire(self, wait_s: float) -> bool:
        """Wait at most `wait_s` seconds; says whether the caller has it."""
        with self._guard:
            if not self._taken:
                self._taken = True
                return True
            called = threading.Lock()
            called.acquire()
            self._waiting.append(called)
        try:
            if called.acquire(timeout=wait_s):
                return True
        except BaseException:  # Ctrl-C while waiting: nobody may pass the lock on to us
            if not self._step_out(called):
                self.release()
            raise
        return not self._step_out(called)

    def _step_out(self, called: threading.Lock) -> bool:
        """Leave the line; False when the lock had just been passed on to us."""
        with self._guard:
            if called not in self._waiting:
                return False
            self._waiting.remove(called)
            return True

    def release(self) -> None:
        """Pass it on to whoever waits longest."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


class Turnstile(Forkable):
    """The turnstile of one database file. A process has one for each file, which `turnstiles` hands out."""

    def __init__(self, database: Path) -> None:
        super().__init__()
        self.database: Final = database
        self.users = 0
        self._line = Line()
        self._descriptor: int | None = None
        self._patient = True

    @contextlib.contextmanager
    def turn(self, wait_s: float) -> Iterator[float]:
        """Hold the right to write; gives the seconds that are left of `wait_s`, at least `LEFT_MIN_S`.

        Raises:
            StoreUnavailable: other threads of this process had the turn for all of `wait_s`.
        """
        deadline = time.monotonic() + wait_s
        if not self._line.acquire(wait_s):
            raise StoreUnavailable(
                "store_unavailable",
                f"other threads of this process wrote to {self.database} for {wait_s * 1000:.0f} ms without a gap; "
                "nothing was written; try again",
            )
        try:
            self._patient = self._come_in(deadline if self._patient else time.monotonic() + _IMPATIENCE_S)
            yield max(deadline - time.monotonic(), LEFT_MIN_S)
        finally:
            self._unlock(_DOOR, _INSIDE)
            self._line.release()

    @contextlib.contextmanager
    def checkpoint(self) -> Iterator[bool]:
        """Try to be the one process that checkpoints, without waiting. For use inside a turn."""
        mine = self._try(_CHECKPOINT)
        try:
            yield mine
        finally:
            if mine:
                self._unlock(_CHECKPOINT)

    def _come_in(self, deadline: float) -> bool:
        inside = self._wait(_DOOR, deadline) and self._wait(_INSIDE, deadline)
        self._unlock(_DOOR)
        return inside

    def _wait(self, lock: int, deadline: float) -> bool:
        pause_s = _PAUSE_FIRST_S
        while not self._try(lock):
            left_s = deadline - time.monotonic()
            if left_s <= 0 or self._descriptor is None:
                return False
            time.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)
        return True

    def _try(self, lock: int) -> bool:
        try:
            if self._descriptor is None:
                self._descriptor = self._open_file()
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, lock)
        except OSError:
            return False
        return True

    def _unlock(self, *locks: int) -> None:
        """Let go of locks, held or not."""
        if self._descriptor is not None:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, len(locks), locks[0])

    def _open_file(self) -> int:
        """Open the file of the locks; who makes it gives it the database's mode and owner, as SQLite does with its own.

        Raises:
            OSError: it cannot be made here; writers then go without the courtesy.
        """
        path = f"{self.database}-turnstile"
        like = self.database.stat()
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return os.open(path, os.O_RDWR)
        os.fchmod(descriptor, like.st_mode & 0o666)
        if os.geteuid() == 0:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        return descriptor

    def forget_file(self) -> None:
        """Close the file of the locks, which lets go of them."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def after_fork_in_child(self) -> None:
        self._line = Line()
        self._patient = True
        self.forget_file()


class Turnstiles(Forkable):
    """The turnstiles of this process: the locks are the process's, so two of one file would undo each other's."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Lock()
        self._by_file: dict[Path, Turnstile] = {}

    def take(self, database: Path) -> Turnstile:
        """The turnstile of `database` (links resolved), to be given back."""
        with self._guard:
            turnstile = self._by_file.get(database)
            if turnstile is None:
                turnstile = self._by_file[database] = Turnstile(database)
            turnstile.users += 1
            return turnstile

    def give_back(self, turnstile: Turnstile) -> None:
        """The last one closes its file."""
        with self._guard:
            turnstile.users -= 1
            if turnstile.users == 0:
                del self._by_file[turnstile.database]
                turnstile.forget_file()

    def after_fork_in_child(self) -> None:
        self._guard = threading.Lock()


turnstiles: Final = Turnstiles()
