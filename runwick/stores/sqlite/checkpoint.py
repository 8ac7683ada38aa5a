"""Our own checkpoints: the pages in the log go back into the database, so that the log starts anew and stays short.

SQLite's automatic ones are off, for two reasons: a commit that has to do one keeps everybody waiting, and in many
versions of SQLite a commit that starts the log anew while another process checkpoints can damage the file. Here nobody
can commit meanwhile::

    turnstile ─▶ checkpoint lock (somebody else has it: nothing to do)
                    writing connection     BEGIN IMMEDIATE ································· ROLLBACK
                    a connection for this                     wal_checkpoint(PASSIVE)

After a complete one the next commit starts the log anew. A reader that is in the way leaves it incomplete; it is tried
again when the log has grown as much once more.
"""

import os
import sqlite3
import struct
from pathlib import Path
from typing import Final, NamedTuple

from runwick.contracts.errors import StoreUnavailable
from runwick.stores.sqlite.link import Link
from runwick.stores.sqlite.turnstile import Turnstile

PAGES_BETWEEN: Final = 1_000
"""The log is checkpointed when so many pages were written to it, by whatever process."""
PAGES_WHEN_CALM: Final = 100
"""When there is nothing else to do, so many are enough."""

_HEADER: Final = struct.Struct(">8xI4x8s8x")
"""The log's header: bytes in a page, and the salts of its present run."""
_FRAME_HEADER: Final = struct.Struct(">8x8s8x")
"""The header of one written page: the salts of the run that wrote it."""


class Mark(NamedTuple):
    """How far the log was looked at: so many pages of the run with these salts."""

    salts: bytes
    pages: int


class Checkpoints:
    """The checkpoints of one database by this process.

    Args:
        database: its file, links resolved.
        writing: the connection that keeps writers out meanwhile.
        own: the connection that checkpoints; made after `writing`.
        turnstile: where both wait.
        wait_s: longest wait for the turn.
    """

    def __init__(self, database: Path, writing: Link, own: Link, turnstile: Turnstile, wait_s: float) -> None:
        self._log = f"{database}-wal"
        self._writing = writing
        self._own = own
        self._turnstile = turnstile
        self._wait_s = wait_s
        self._tried = Mark(b"", 0)
        self._calm = False

    def calm(self) -> None:
        """Say that the act under way found nothing to do: after it is a good moment."""
        self._calm = True

    def after_commit(self) -> None:
        """Checkpoint if the log has grown long. It never fails: what could not be done is done later."""
        pages = PAGES_WHEN_CALM if self._calm else PAGES_BETWEEN
        self._calm = False
        if self._grown_by(pages):
            self._try(pages)

    def _grown_by(self, pages: int) -> bool:
        """Whether the log holds so many pages more than when a checkpoint was last tried here.

        A run of the log begins with new salts at its first page, and what lies behind its last page has older ones.
        """
        try:
            descriptor = os.open(self._log, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            header = os.pread(descriptor, _HEADER.size, 0)
            if len(header) < _HEADER.size:
                return False
            page_bytes, salts = _HEADER.unpack(header)
            if salts != self._tried.salts:
                self._tried = Mark(salts, 0)
            last = self._tried.pages + pages - 1
            place = _HEADER.size + last * (_FRAME_HEADER.size + page_bytes)
            frame = os.pread(descriptor, _FRAME_HEADER.size, place)
            return len(frame) == _FRAME_HEADER.size and _FRAME_HEADER.unpack(frame)[0] == salts
        finally:
            os.close(descriptor)

    def _try(self, pages: int) -> None:
        try:
            with self._turnstile.turn(self._wait_s), self._turnstile.checkpoint() as mine:
                if mine and self._grown_by(pages):
                    self._checkpoint()
        except (sqlite3.Error, StoreUnavailable):
            self._tried = Mark(self._tried.salts, self._tried.pages + PAGES_BETWEEN)

    def _checkpoint(self) -> None:
        with self._writing as writing, self._own as own:
            writing.execute("BEGIN IMMEDIATE")
            try:
                _, logged, _ = own.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            finally:
                writing.execute("ROLLBACK")
        self._tried = Mark(self._tried.salts, logged)
