"""What signals mean to the supervisor.

    TERM, INT   drain · again: ask what runs to stop · a third time: kill it
    HUP         load the application anew; from a terminal that closes: drain; started with nohup: nothing
    USR1        the stack of everything that runs, into the operator's log

TERM and INT before there is a worker leave off what is under way: nothing has begun. A HUP before it is ready is kept.
The handlers run on the event loop and only tell others.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runwick.worker.drain import Stop
from runwick.worker.engine import Worker

_STREAMS: Final = (0, 1, 2)


class Hearing:
    """Made at the start, in the task that lives as long as the supervisor; `end` gives the signals back."""

    def __init__(self) -> None:
        self.was_left = False
        """Whether the task was cancelled because it was to stop before there was a worker."""
        self._loop = asyncio.get_running_loop()
        self._life = asyncio.current_task()
        self._terminals = [stream for stream in _STREAMS if os.isatty(stream)]
        self._worker: Worker | None = None
        self._show: Callable[[], None] | None = None
        self._reload: Callable[[], None] | None = None
        self._was_hung_up = False
        self._heard: set[signal.Signals] = set()
        self._heeds_hang_ups = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
        for number in (signal.SIGTERM, signal.SIGINT):
            self._hear(number, self._leave)
        self._hear(signal.SIGUSR1, self._show_stacks)
        if self._heeds_hang_ups and not self._terminals:
            self._hear(signal.SIGHUP, self._load_anew)

    def begin(self, worker: Worker) -> None:
        """From now on there is a worker that can be stopped."""
        self._worker = worker
        for number in (signal.SIGTERM, signal.SIGINT):
            self._hear(number, worker.stop_more_urgently)
        if self._heeds_hang_ups and self._terminals:
            self._hear(signal.SIGHUP, self._hang_up)

    def ready(self, show: Callable[[], None], reload: Callable[[], None]) -> None:
        """From now on it works.

        Args:
            show: has the stacks of what runs told.
            reload: begins to load the application anew; called at once if that was wanted already.
        """
        self._show, self._reload = show, reload
        if self._was_hung_up:
            reload()

    def end(self) -> None:
        """Nobody is told any more."""
        for number in self._heard:
            self._loop.remove_signal_handler(number)
        self._heard.clear()

    def _hear(self, number: signal.Signals, tell: Callable[[], None]) -> None:
        self._loop.add_signal_handler(number, tell)
        self._heard.add(number)

    def _leave(self) -> None:
        assert self._life is not None
        self.was_left = True
        self._life.cancel()

    def _show_stacks(self) -> None:
        if self._show is not None:
            self._show()

    def _load_anew(self) -> None:
        if self._reload is None:
            self._was_hung_up = True
        else:
            self._reload()

    def _hang_up(self) -> None:
        """Drain, without a terminal to write on: every write there would fail."""
        gone = [stream for stream in self._terminals if not os.isatty(stream)]
        if gone:
            with Path(os.devnull).open("r+b") as nowhere:
                for stream in gone:
                    os.dup2(nowhere.fileno(), stream)
        assert self._worker is not None
        self._worker.stop(Stop.DRAIN)
