"""The store's time on this host: the system's clock, except that it never goes back.

::

    host's clock   ───────────╮ set back        ╭─────────
    store's time   ───────────╰── goes on, a little slower ──╮ they have met again

Leases that have run out must stay so, whatever happens to the host's clock. In one process the time that was told last
is the anchor from which it goes on by the steady clock. Between processes the time at which a worker was last seen,
which every heartbeat writes anyway, is the least that each of them starts from.
"""

import threading
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.runtime.forks import Forkable

PACE: Final = 0.9
"""How fast the store's time goes while it is ahead of the host's, so that the host's catches up. Slower is safe: a
lease then lasts longer than its worker counts on."""


class StoreClock(Forkable):
    """The store's time in this process; all threads see it rise.

    Args:
        host: the system's clocks.
    """

    def __init__(self, host: Clock) -> None:
        super().__init__()
        self._host: Final = host
        self._guard = threading.Lock()
        self._anchor_ms = 0
        self._anchor_s = host.steady_s()

    def now_ms(self) -> int:
        with self._guard:
            return self._now_ms()

    def steady_s(self) -> float:
        return self._host.steady_s()

    def ahead_ms(self) -> int:
        """How far it stands before the host's, which was set back; 0 when they are together."""
        return self.now_ms() - self._host.now_ms()

    def reach(self, seen_ms: int) -> None:
        """Be at `seen_ms` at least: some process of this store has seen that time."""
        if seen_ms <= self._anchor_ms:
            return
        with self._guard:
            if seen_ms > self._now_ms():
                self._anchor_ms, self._anchor_s = seen_ms, self._host.steady_s()

    def _now_ms(self) -> int:
        steady_s = self._host.steady_s()
        host_ms = self._host.now_ms()
        going_on_ms = self._anchor_ms + int((steady_s - self._anchor_s) * 1000 * PACE)
        if host_ms < going_on_ms:
            return going_on_ms
        self._anchor_ms, self._anchor_s = host_ms, steady_s
        return host_ms

    def after_fork_in_child(self) -> None:
        self._guard = threading.Lock()
