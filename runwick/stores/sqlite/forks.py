"""What a fork means to this package: no SQLite connection is ever carried across one.

SQLite counts a file's locks in memory, per process. A forked child inherits the count but not the locks, so whatever
it opens on the same file *beside an inherited connection* believes itself locked and is not: the last other process
closes, removes the log, and what the child commits afterwards is confirmed and lost. Forgetting an inherited
connection without closing it is therefore not enough; there must be none::

    forking thread   before: wait until nobody is inside SQLite, close ──fork──▶ parent   opens again at its next use
                                                                          └────▶ child    fresh locks and threads,
                                                                                          opens again at its next use

Where that failed (a fork by foreign code that runs no hooks, or in the middle of a call), the child keeps the
inherited connection untouched for ever and refuses the file.
"""

import ctypes
import itertools
import os
import sqlite3
import threading
from pathlib import Path
from typing import Final
from weakref import WeakSet

from runwick.contracts.errors import StoreProfileMismatch

PATIENCE_S: Final = 10.0
"""How long a fork waits for a call that is inside SQLite."""

_making = itertools.count()
_concerned: "WeakSet[Forkable]" = WeakSet()
_resting: "list[Forkable]" = []
_one_fork = threading.Lock()
_carried: set[Path] = set()
_pid = os.getpid()


class Forkable:
    """Something of this package that a fork concerns; it hears of every fork as long as it lives.

    Members are told in the order of their making. Whoever locks two links locks the older one first. None is made while
    a fork is under way.
    """

    def __init__(self) -> None:
        with _one_fork:
            self.made: Final = next(_making)
            _concerned.add(self)

    def before_fork(self) -> None:
        """In the forking thread: come to rest."""

    def after_fork_in_parent(self) -> None:
        """In the forking thread: go on."""

    def after_fork_in_child(self) -> None:
        """In the child, whose only thread this is: begin afresh."""


def notice() -> None:
    """Notice a fork by foreign code that ran no hooks. Called at each use of a store."""
    if os.getpid() != _pid:
        _after_in_child()


def keep_untouched(path: Path, inherited: sqlite3.Connection) -> None:
    """Never use or close `inherited`, not even at exit, and refuse `path` in this process from now on."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))
    _carried.add(path)


def refuse_if_carried(path: Path) -> None:
    """Refuse a file of which this process inherited an open connection.

    Raises:
        StoreProfileMismatch: it did.
    """
    if path in _carried:
        raise StoreProfileMismatch(
            "store_profile_mismatch",
            f"this process was forked while its parent was using {path}, so SQLite cannot lock the file here; fork "
            "with os.fork or multiprocessing outside of store calls, or use the store only after the fork",
        )


def _before() -> None:
    _one_fork.acquire()
    _resting.extend(_in_order())
    for member in _resting:
        member.before_fork()


def _after_in_parent() -> None:
    for member in _resting:
        member.after_fork_in_parent()
    _resting.clear()
    _one_fork.release()


def _after_in_child() -> None:
    global _one_fork, _pid
    _one_fork = threading.Lock()
    _pid = os.getpid()
    _resting.clear()
    for member in _in_order():
        member.after_fork_in_child()


def _in_order() -> list[Forkable]:
    return sorted(_concerned, key=lambda member: member.made)


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
