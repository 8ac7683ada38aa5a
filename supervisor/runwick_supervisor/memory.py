"""The memory that one executor shares with the parent: the facts of the running attempt, and two rings of records.

    ┌ control ┬ work ring, parent ▶ executor ─────────────┬ return ring, executor ▶ parent ───────────┐
    │ facts   │ slots ┊ ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓╎free             │ slots ┊ ▓▓▓▓▓▓╎free                       │
    └─────────┴───────────────────────────────────────────┴───────────────────────────────────────────┘

What the control area means is said in `control`.

Each ring has one writer and one reader, and neither can see how far the other is: how many records there are is said by
the doorbells alone. The n-th record lies where the n-th slot says, counted round and round, and the writer alone
decides where that is. It needs a record until it is answered (they leave in order, at the old end) or taken back (at
the new end), and between those it finds room:

    start          oldest             newest  tail
      │ free        │▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ free    linear: the next goes to the tail, or to the start
      │▓▓▓▓▓▓╎free  │▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ free    wrapped: the next goes between tail and oldest

The memory belongs to one executor and is thrown away with it, so nothing that a death left half-written is read again.
"""

import collections
import fcntl
import mmap
import os
from typing import Final, NamedTuple

RECORDS_MAX: Final = 1024
"""Records of one ring that are not answered yet."""

_WORD_BYTES: Final = 8
LOG_START: Final = 4096
LOG_BYTES: Final = 16 * 1024
"""Where in the control area, and how many bytes, the last log lines of the running attempt are."""
CONTROL_BYTES: Final = LOG_START + LOG_BYTES
_RING_BYTES: Final = 4 * 1024 * 1024
"""Room for a record of the largest payload or result beside others. Pages are taken only when they are touched."""
_NEAR_BYTES: Final = 128 * 1024
"""A writer that has left this part of its ring goes back once the part is free: small records stay in the cache."""


class Ring(NamedTuple):
    """Where a ring lies in the memory. Everything is aligned to whole words, so that no word of it can be torn."""

    first_slot: int
    """In words; there are `RECORDS_MAX` of them."""
    start: int
    """In bytes, like `end`."""
    end: int


def _ring(begin: int) -> Ring:
    start = begin + RECORDS_MAX * _WORD_BYTES
    return Ring(begin // _WORD_BYTES, start, start + _RING_BYTES)


WORK_RING: Final = _ring(CONTROL_BYTES)
RETURN_RING: Final = _ring(WORK_RING.end)
MEMORY_BYTES: Final = RETURN_RING.end


class SharedMemory:
    """A mapping of one executor's memory, in either process."""

    def __init__(self, descriptor: int) -> None:
        self.map = mmap.mmap(descriptor, MEMORY_BYTES)
        self.view = memoryview(self.map)
        self.words = self.view.cast("Q")

    @staticmethod
    def create() -> int:
        """A descriptor of fresh memory, zeroed. Its size is sealed: nobody can cut it from under a reader."""
        descriptor = os.memfd_create("runwick-executor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, MEMORY_BYTES)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return descriptor

    def close(self) -> None:
        """Unmap it. Nothing may hold a view of it any more."""
        self.words.release()
        self.view.release()
        self.map.close()


class RingWriter:
    """The writing end of a ring: places records, and knows which of them are still needed."""

    __slots__ = ("_count", "_live", "_near", "_ring", "_tail", "_words")

    def __init__(self, words: memoryview, ring: Ring) -> None:
        self._words = words
        self._ring = ring
        self._near = ring.start + _NEAR_BYTES
        self._tail = ring.start
        self._count = 0
        self._live: collections.deque[tuple[int, int]] = collections.deque()
        """Of each record, oldest first: where it lies, and the tail before it was placed."""

    @property
    def far(self) -> bool:
        """Whether the tail has left the part that stays in the cache."""
        return self._tail > self._near

    def reserve(self, size_bytes: int) -> int | None:
        """Place a record of that size; answers its offset in the memory, None when there is no room now."""
        size_bytes = (size_bytes + _WORD_BYTES - 1) & -_WORD_BYTES
        offset = self._room_for(size_bytes)
        if offset is None:
            return None
        self._words[self._ring.first_slot + self._count % RECORDS_MAX] = offset
        self._count += 1
        self._live.append((offset, self._tail))
        self._tail = offset + size_bytes
        return offset

    def _room_for(self, size_bytes: int) -> int | None:
        _, start, end = self._ring
        live, tail = self._live, self._tail
        if not live:
            return start if start + size_bytes <= end else None
        oldest = live[0][0]
        if len(live) == RECORDS_MAX:
            return None
        if tail <= oldest:
            return tail if tail + size_bytes <= oldest else None
        if tail > self._near and start + size_bytes <= self._near <= oldest:
            return start
        if tail + size_bytes <= end:
            return tail
        return start if start + size_bytes <= oldest else None

    def release_oldest(self) -> None:
        """The oldest record has been answered."""
        self._live.popleft()

    def release_newest(self) -> None:
        """The newest record was taken back: the reader will never look for it."""
        _, self._tail = self._live.pop()
        self._count -= 1


class RingReader:
    """The reading end of a ring. It must be told by a doorbell that there is a record before it looks for one."""

    __slots__ = ("_count", "_ring", "_words")

    def __init__(self, words: memoryview, ring: Ring) -> None:
        self._words = words
        self._ring = ring
        self._count = 0

    def next_offset(self) -> int:
        """Where the next record lies, as its writer says."""
        offset: int = self._words[self._ring.first_slot + self._count % RECORDS_MAX]
        self._count += 1
        return offset

    def holds(self, offset: int, size_bytes: int) -> bool:
        """Whether so many bytes can lie there."""
        return self._ring.start <= offset <= self._ring.end - size_bytes and offset % _WORD_BYTES == 0
