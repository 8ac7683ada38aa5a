"""Hears of work that was made due and of what workers are asked for: a thread that does nothing but SUBSCRIBE.

::

    connect ─▶ SUBSCRIBE ─▶ wake everybody, for what came before ─▶ heard ─▶ wake whom it concerns
       ▲                                                              │      a silence of 30 s: does the server answer?
       └──── pause, at most 1 s ◀────────── lost ◀────────────────────┘

On ``rw:work`` an application's name is work of it; on ``rw:asked`` its name, a NUL and the id of a worker is something
that one is asked for, a cancel or a stack. First SUBSCRIBE, then look: what is told in between is heard. A lost hint
costs nothing but the wait for the next poll, so nothing here is ever an error.
"""

import contextlib
import random
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from runwick.stores.redis.connection import Connection
from runwick.stores.redis.opening import Opening

PURPOSE: Final = "runwick-listening"
WORK: Final = "rw:work"
ASKED: Final = "rw:asked"

_SILENCE_S: Final = 30.0
_PAUSE_FIRST_S: Final = 0.05
_PAUSE_LAST_S: Final = 1.0


class Told(NamedTuple):
    """What was told."""

    application: str | None = None
    """Which has work, or whose worker is asked; None stands for any, and for anything."""
    worker: bytes | None = None
    """Who is asked for something; None where it is about work."""


def _told(channel: bytes, message: bytes) -> Told:
    application, _, worker = message.partition(b"\0")
    name = application.decode("utf-8", "replace")
    return Told(name, worker) if channel == ASKED.encode() else Told(name)


class Listener:
    """Listens until it is closed. In a forked child it is the parent's: nothing need be done.

    Args:
        opening: opens its connection.
        told: called on its thread with what was told.
        silence_s: after how long without a word the server is asked whether it is there.
    """

    def __init__(self, opening: Opening, told: Callable[[Told], None], silence_s: float = _SILENCE_S) -> None:
        self._opening = opening
        self._told = told
        self._silence_s = silence_s
        self._end = threading.Event()
        self._connection: Connection | None = None
        self._thread = threading.Thread(target=self._live, name="runwick-redis-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and its connection."""
        self._end.set()
        if (connection := self._connection) is not None:
            connection.hang_up()
        self._thread.join(self._opening.limit_s)

    def _live(self) -> None:
        pause_s = _PAUSE_FIRST_S
        while not self._end.is_set():
            with contextlib.suppress(Exception), contextlib.closing(self._opening.connect(PURPOSE)) as connection:
                self._connection = connection
                connection.subscribe(WORK, ASKED)
                pause_s = _PAUSE_FIRST_S
                self._told(Told())
                self._listen(connection)
            self._end.wait(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, _PAUSE_LAST_S)

    def _listen(self, connection: Connection) -> None:
        while not self._end.is_set():  # said before, or the connection is closed: both end the wait
            said = connection.hear(self._silence_s)
            if said is None:
                connection.ask("PING")
                self._told(Told())  # what came meanwhile was passed over
                continue
            kind, channel, message = said
            if kind == b"message":
                self._told(_told(channel, message))
