"""One scope and one rate window as an act reads, changes and writes them back.

A window's grants are a ring: number ``n`` lies in slot ``n % most``, and there is room for it when what lies there is
older than the window. So each authorisation is exact at the price of one slot read and one written, however many the
window allows. The leaving of a grant can be *promised*, once, to a job that waits: it is due when there is room.

A window's own time never goes back. It is the store's, shifted by as much as that one ever went back.
"""

from typing import Final

from runwick.contracts.limits import CALLED_MAX, DEFER_JITTER_MS, DEFER_MIN_MS

UNUSED_AFTER_MS: Final = 250
"""Room in a window that nobody has used for so long is the sweep's to give away."""


class Scope:
    """How many run at once, and how many may."""

    __slots__ = ("calls", "capacity", "changed", "fence", "fenced", "has_line", "id", "in_use")

    def __init__(
        self,
        limit_id: bytes,
        *,
        capacity: int,
        in_use: int,
        fenced: bool = False,
        fence: int = 0,
        calls: int = 0,
        has_line: bool = False,
    ) -> None:
        """
        Args:
            fenced: it is a resource's. Its holders get tokens while the capacity is 1.
            fence: the last token given.
            calls: jobs called out of its line so far.
        """
        self.id = limit_id
        self.capacity = capacity
        self.in_use = in_use
        self.fenced = fenced
        self.fence = fence
        self.calls = calls
        self.has_line = has_line
        self.changed = False
        """Whether its row is to be written."""

    @property
    def room(self) -> int:
        """Places that are free; none while more run than a lowered capacity allows."""
        return max(0, self.capacity - self.in_use)

    def take(self) -> int | None:
        """One place; answers the fencing token that goes with it."""
        self.in_use += 1
        self.changed = True
        if not self.fenced or self.capacity != 1:
            return None
        self.fence += 1
        return self.fence

    def free(self, places: int) -> int:
        """Give places back; answers how many jobs of the line may be called for them."""
        self.in_use -= places
        self.changed = True
        return min(places, self.room)

    def resize(self, capacity: int) -> int:
        """Another capacity; answers how many jobs of the line may be called for it."""
        grown = capacity - max(self.capacity, self.in_use)
        self.capacity = capacity
        self.changed = True
        return max(0, grown)

    def recount(self, holds: int) -> bool:
        """Set right what the holds say; answers whether it was wrong."""
        if holds == self.in_use:
            return False
        self.in_use = holds
        self.changed = True
        return True


class Window:
    """How many began within a window of time, and how many may."""

    __slots__ = (
        "calls",
        "changed",
        "granted",
        "has_line",
        "id",
        "last_ms",
        "most",
        "promised",
        "shift_ms",
        "slots",
        "window_ms",
        "written",
    )

    def __init__(
        self,
        limit_id: bytes,
        *,
        most: int,
        window_ms: int,
        granted: int = 0,
        promised: int = 0,
        shift_ms: int = 0,
        last_ms: int = 0,
        calls: int = 0,
        has_line: bool = False,
        slots: dict[int, int] | None = None,
    ) -> None:
        """
        Args:
            most: size of the ring.
            granted: grants of all its life.
            promised: the first grant whose leaving nobody was promised yet.
            shift_ms, last_ms: its own time, see `time_ms`.
            slots: slot to the window's time of the grant in it; those of `slots_needed` that exist.
        """
        self.id = limit_id
        self.most = most
        self.window_ms = window_ms
        self.granted = granted
        self.promised = max(promised, granted - most)
        self.shift_ms = shift_ms
        self.last_ms = last_ms
        self.calls = calls
        self.has_line = has_line
        self.slots: dict[int, int] = {} if slots is None else slots
        self.written: set[int] = set()
        """Slots to write."""
        self.changed = False
        """Whether its row is to be written."""

    def time_ms(self, now_ms: int) -> int:
        """Its own time at the store's `now_ms`. Where that went back, what it went back by is added from now on: no
        grant comes too early for it, and the window does not stand still until the old time is reached again."""
        time_ms = now_ms + self.shift_ms
        if time_ms < self.last_ms:
            self.shift_ms += self.last_ms - time_ms
            self.changed = True
            return self.last_ms
        return time_ms

    def slots_needed(self, count: int) -> list[int]:
        """Which slots an act must read that grants and promises up to `count` times, ascending."""
        grants = range(self.granted, self.granted + min(count, self.most))
        heirs = count + CALLED_MAX * self.has_line
        promises = range(self.promised, min(self.granted, self.promised + heirs))
        return sorted({number % self.most for span in (grants, promises) for number in span})

    def free(self, time_ms: int, count: int, unused_ms: int = 0) -> int:
        """How many grants there is room for, up to `count`: those whose slot was left `unused_ms` ago or earlier."""
        free = 0
        while free < min(count, self.most) and self._leaves_ms(self.granted + free) + unused_ms <= time_ms:
            free += 1
        return free

    def grant(self, time_ms: int) -> None:
        """Authorise one run; there must be room. It is never refunded."""
        slot = self.granted % self.most
        self.slots[slot] = self.last_ms = time_ms
        self.written.add(slot)
        self.granted += 1
        self.promised = max(self.promised, self.granted - self.most)
        self.changed = True

    @property
    def unpromised(self) -> int:
        """Grants whose leaving nobody was promised yet."""
        return self.granted - self.promised

    def promise(self, job_id: bytes, now_ms: int) -> int:
        """Promise one job the leaving of the first grant that nobody was promised; answers when it is due, by the
        store's time. The jitter is the job's own, so all stores and all replays say the same."""
        leaves_ms = self._leaves_ms(self.promised) - self.shift_ms
        self.promised += 1
        self.changed = True
        return max(leaves_ms, now_ms + DEFER_MIN_MS + job_id[-1] % (DEFER_JITTER_MS + 1))

    def take_back(self) -> None:
        """A promise that its job will not use, and nobody stands in line for: the next refused job gets it."""
        if self.unpromised < min(self.granted, self.most):
            self.promised -= 1
            self.changed = True

    def _leaves_ms(self, number: int) -> int:
        """When there is room again for what comes `most` after grant `number`'s slot was last written."""
        at_ms = self.slots.get(number % self.most)
        return 0 if at_ms is None else at_ms + self.window_ms
