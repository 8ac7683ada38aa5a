"""Hears of work that was made due and of what workers are asked for: a thread that does nothing but LISTEN.

::

    connect ─▶ LISTEN ─▶ wake everybody, for what came before ─▶ heard ─▶ wake whom it concerns
       ▲                                                           │      a silence of 30 s: does the server answer?
       └──── pause, at most 1 s ◀──────── lost ◀───────────────────┘

``7`` is work of application 7; ``7:`` and the id of a worker is something that one is asked for, a cancel or a stack.
First LISTEN, then look: what is told in between is heard. A lost hint costs nothing but the wait for the next poll, so
nothing here is ever an error.
"""

import contextlib
import random
import socket
import threading
import uuid
from collections.abc import Callable
from typing import Final, NamedTuple

from runwick.stores.postgres.connection import Connection, readable
from runwick.stores.postgres.forks import keep_untouched
from runwick.stores.postgres.opening import Opening
from runwick.stores.postgres.statements import sql

PURPOSE: Final = "runwick listening"

_SILENCE_S: Final = 30.0
_PAUSE_FIRST_S: Final = 0.05
_PAUSE_LAST_S: Final = 1.0


class Told(NamedTuple):
    """What was told."""

    application: int | None = None
    """Which has work, or whose worker is asked; None stands for any, and for anything."""
    worker: bytes | None = None
    """Who is asked for something; None where it is about work."""


def _told(text: str) -> Told:
    application, _, worker = text.partition(":")
    if not application.isdecimal():
        return Told()
    try:
        return Told(int(application), uuid.UUID(worker).bytes if worker else None)
    except ValueError:
        return Told()


def _heard_beside(connection: Connection) -> list[str]:
    """Ask whether the server is there; answers what was told meanwhile."""
    connection.fetch(sql("alive").encode())
    return [notification.payload for notification in connection.notifies(timeout=0)]


class Listener:
    """Listens until it is closed.

    Args:
        opening: opens its connection.
        told: called on its thread with what was told.
        silence_s: after how long without a word the server is asked whether it is there.
    """

    def __init__(self, opening: Opening, told: Callable[[Told], None], silence_s: float = _SILENCE_S) -> None:
        self._opening = opening
        self._told = told
        self._silence_s = silence_s
        self._end, self._ending = socket.socketpair()
        self._connection: Connection | None = None
        self._thread = threading.Thread(target=self._live, name="runwick-postgres-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and its connection."""
        self._ending.send(b".")
        self._thread.join(self._opening.limit_s)

    def forget(self) -> None:
        """In a forked child: leave the parent's listening alone."""
        keep_untouched(self._connection)
        self._end.close()
        self._ending.close()

    def _live(self) -> None:
        with contextlib.closing(self._end), contextlib.closing(self._ending):
            self._stay_connected()

    def _stay_connected(self) -> None:
        pause_s = _PAUSE_FIRST_S
        while not self._is_ended(0):
            with contextlib.suppress(Exception):
                self._connection = self._opening.connect(PURPOSE)
                with contextlib.closing(self._connection):
                    self._connection.fetch(sql("listen").encode())
                    pause_s = _PAUSE_FIRST_S
                    self._told(Told())
                    self._listen(self._connection)
            if self._is_ended(pause_s * random.uniform(0.5, 1.0)):
                return
            pause_s = min(2 * pause_s, _PAUSE_LAST_S)

    def _listen(self, connection: Connection) -> None:
        while True:
            spoke = readable([connection.fileno(), self._end.fileno()], self._silence_s)
            if self._end.fileno() in spoke:
                return
            for text in set(connection.heard() if spoke else _heard_beside(connection)):
                self._told(_told(text))

    def _is_ended(self, wait_s: float) -> bool:
        return bool(readable([self._end.fileno()], wait_s))
