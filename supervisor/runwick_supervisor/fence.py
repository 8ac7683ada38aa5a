"""The fence: until when each executor may live, in memory that survives a parent which stands still.

    parent    writes slot n: a moment on CLOCK_BOOTTIME, which counts suspension too; 0 while nothing is to be fenced
    zygote    reads them all, and kills the family of every executor whose moment has come: just before it, so that
              it finds the family together
    executor  its compiled part reads its own slot, and keeps the kernel's timer armed at it: whatever else stands still

The parent moves the moments on as long as its leases are renewed. When it is stopped, frozen or starved, nobody does,
and the fence falls: no executor outlives the lease of what it runs. One memory serves all pools; executor n has slot n.
Its size is sealed, and so is writing it by anybody but the parent, who mapped it before.
"""

import fcntl
import mmap
import os
import time
from typing import Final

_SLOT_BYTES: Final = 64
"""One cache line, so that neighbours do not disturb each other."""
_SLOT_WORDS: Final = _SLOT_BYTES // 8
SLOTS: Final = 16 * 1024
"""Pages are taken only when they are touched."""
_FENCE_BYTES: Final = SLOTS * _SLOT_BYTES
LEAD_NS: Final = 20_000_000
"""So much before the moment it has come, for whoever has to do something about it."""
_F_SEAL_FUTURE_WRITE: Final = 0x10


def now_ns() -> int:
    """The fence's clock."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class FenceMemory:
    """The parent's side, the only one that can write."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        """What a zygote is given."""
        self._map = mmap.mmap(descriptor, _FENCE_BYTES)
        self._view = memoryview(self._map)
        self._words = self._view.cast("Q")

    @classmethod
    def create(cls) -> "FenceMemory":
        """Fresh memory in which nothing is fenced."""
        descriptor = os.memfd_create("runwick-fence", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, _FENCE_BYTES)
        fence = cls(descriptor)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | _F_SEAL_FUTURE_WRITE | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        return fence

    def set(self, number: int, deadline_ns: int) -> None:
        """Executor `number` may live until then; 0: as long as it likes."""
        self._words[number * _SLOT_WORDS] = deadline_ns

    def get(self, number: int) -> int:
        """Until when executor `number` may live; 0 when nothing is said."""
        deadline_ns: int = self._words[number * _SLOT_WORDS]
        return deadline_ns

    def has_fallen(self, number: int) -> bool:
        """Whether executor `number` may not live any more: whatever killed it meanwhile, the fence would have."""
        return 0 < self.get(number) <= now_ns() + LEAD_NS

    def close(self) -> None:
        """Let go of it; zygotes and executors keep what they were given."""
        self._words.release()
        self._view.release()
        self._map.close()
        os.close(self.descriptor)


class FenceReader:
    """A zygote's side."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._map = mmap.mmap(descriptor, _FENCE_BYTES, prot=mmap.PROT_READ)
        self._words = memoryview(self._map).cast("Q")

    def due_ns(self, number: int) -> int | None:
        """In how many nanoseconds the moment of executor `number` has come, 0 or less when it has; None when nothing is
        said of it."""
        deadline_ns: int = self._words[number * _SLOT_WORDS]
        return deadline_ns - LEAD_NS - now_ns() if deadline_ns else None
