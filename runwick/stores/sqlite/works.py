"""What a driver holds while it is open: connections, threads, the turnstile, checkpoints. It runs nothing itself."""

import functools
import os
import queue
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from runwick.contracts.stores import Act
from runwick.runtime.desk import Desk, Ended, Order
from runwick.stores.sqlite import opening
from runwick.stores.sqlite.checkpoint import Checkpoints
from runwick.stores.sqlite.link import File, Link
from runwick.stores.sqlite.turnstile import turnstiles

_TOGETHER_MAX: Final = 32
"""Most acts in one transaction."""


class Works:
    """What a driver holds while it is open: connections, threads, the turnstile."""

    def __init__(
        self,
        path: Path,
        wait_s: float,
        reader_threads: int,
        write: "Callable[[Works, Sequence[Order]], list[Ended]]",
        read: "Callable[[Works, Sequence[Order]], list[Ended]]",
    ) -> None:
        self.notes = opening.examine_place(path)
        database = Path(os.path.realpath(path))
        self.turnstile = turnstiles.take(database)
        file = File(path)
        self.writing = Link(file, lambda: opening.connect(path, wait_s))
        self._checkpointing = Link(file, lambda: opening.connect(path, wait_s))
        self._reading = [
            Link(file, lambda: opening.connect(path, wait_s, reads_only=True)) for _ in range(reader_threads)
        ]
        self.idle_readers: queue.LifoQueue[Link] = queue.LifoQueue()
        for link in self._reading:
            self.idle_readers.put(link)
        self.checkpoints = Checkpoints(database, self.writing, self._checkpointing, self.turnstile, wait_s)
        self.writer = Desk[Act[Any]](
            "runwick-sqlite-writer",
            1,
            functools.partial(write, self),
            most=_TOGETHER_MAX,
            afterwards=self.checkpoints.after_commit,
        )
        self.readers = Desk[Act[Any]]("runwick-sqlite-reader", reader_threads, functools.partial(read, self))

    def close(self) -> None:
        """End the threads, close the connections, give the turnstile back."""
        self.writer.close()
        self.readers.close()
        for link in (self.writing, self._checkpointing, *self._reading):
            link.close()
        turnstiles.give_back(self.turnstile)
