"""`Watch`: the health of one process, put together from what its store and its worker were last seen to do."""

from collections.abc import Callable, Sequence

from runwick.contracts.ambient import Clock
from runwick.contracts.health import ProcessHealth
from runwick.contracts.stores import Store
from runwick.health.checks import Now, check_live, check_store, check_worker
from runwick.health.pulse import Pulse
from runwick.health.store_watch import StoreWatch


class Watch:
    """What a process that dispatches, works or serves management has to say of itself.

    Args:
        application: whose rows of the store are read.
        store: gives the store, opened at first use.
        clock: judges ages.
        roles: those that need the store and nothing else: ``producer``, ``management``.
        pulse: gives that of the worker in this process; None where none is at work.
    """

    def __init__(
        self,
        application: str,
        store: Callable[[], Store],
        clock: Clock,
        *,
        roles: Sequence[str],
        pulse: Callable[[], Pulse | None] = lambda: None,
    ) -> None:
        self._store = StoreWatch(application, store, clock)
        self._clock = clock
        self._roles = roles
        self._pulse = pulse

    def health(self) -> ProcessHealth:
        """Each role as it was last seen; answered at once. The first call begins to look, and knows nothing yet."""
        seen, pulse, now = self._store.look(), self._pulse(), Now.by(self._clock)
        ready = [check_store(role, seen, now) for role in self._roles]
        if pulse is not None:
            ready.append(check_worker(pulse.seen, now))
        return ProcessHealth(check_live(None if pulse is None else pulse.seen, now), tuple(ready))

    def close(self) -> None:
        """Look no more, until the next call."""
        self._store.close()
