"""Doorbells: kernel counters (eventfd) that announce records in shared memory. The count is the only index.

    work         a semaphore: one count per record that nobody has taken. The executor takes one at the head, the
                 parent takes one back at the tail; the kernel hands each count to exactly one of them.
    completions  the executor rings once per finished record, the parent reads all of them at once
    room         the parent rings for the return records it has read, many at once; the executor reads it when it needs
                 space

No side keeps an index that the other reads, and nothing says "I am asleep": there is nothing to tear and no wake-up to
lose. The kernel's lock around the counter orders the copy into memory before the count that announces it.
"""

import fcntl
import os
import signal
from typing import Final

_MARK: Final = signal.SIGRTMAX
"""What makes a counter one of ours: the signal that it would send if it were asked to send any. Nobody asks it."""


class Doorbell:
    """One counter. Both ends hold a descriptor of it; neither ever blocks on it."""

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def create(cls, *, semaphore: bool = False) -> "Doorbell":
        """A counter at 0; with `semaphore`, a read takes one count instead of all."""
        kind = os.EFD_SEMAPHORE if semaphore else 0
        descriptor = os.eventfd(0, kind | os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, _MARK)
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor)

    @property
    def is_whole(self) -> bool:
        """Whether the descriptor still is one of these counters: handlers can close it, and then open anything under
        its number."""
        try:
            return fcntl.fcntl(self.descriptor, fcntl.F_GETSIG) == _MARK
        except OSError:
            return False

    def ring(self, count: int = 1) -> None:
        """Announce `count` records.

        Raises:
            BlockingIOError: the counter is full, which only somebody who wrote into it at will can bring about.
        """
        os.eventfd_write(self.descriptor, count)

    def take(self) -> int:
        """What was announced: one for a semaphore, otherwise everything; 0 when nothing was."""
        try:
            return os.eventfd_read(self.descriptor)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        os.close(self.descriptor)
