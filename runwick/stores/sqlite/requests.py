"""Who in this process wants to be woken when something is asked of its worker.

Only this process's own acts are heard: a worker of another one asks the store itself, at least once a second while it
holds anything.
"""

from collections.abc import Callable, Collection

from runwick.runtime.forks import Forkable


class Requests(Forkable):
    """The wakes of this process's workers."""

    def __init__(self) -> None:
        super().__init__()
        self._wakes: dict[object, tuple[bytes, Callable[[], None]]] = {}

    def subscribe(self, worker: bytes, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake`, from any thread, when something is asked of this worker; returns how to stop that."""
        subscription = object()
        self._wakes[subscription] = worker, wake

        def stop() -> None:
            self._wakes.pop(subscription, None)

        return stop

    def tell(self, workers: Collection[bytes]) -> None:
        """Wake these workers."""
        for worker, wake in list(self._wakes.values()):
            if worker in workers:
                wake()

    def close(self) -> None:
        """Forget everybody."""
        self._wakes.clear()

    def after_fork_in_child(self) -> None:
        self._wakes.clear()
