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
import sqlite3
from pathlib import Path
from typing import Final

from runwick.contracts.errors import StoreProfileMismatch

PATIENCE_S: Final = 10.0
"""How long a fork waits for a call that is inside SQLite."""

_carried: set[Path] = set()


def keep_untouched(path: Path, inherited: sqlite3.Connection | None) -> None:
    """Never use or close `inherited`, not even at exit, and refuse `path` in this process from now on.

    Args:
        path: of the file.
        inherited: None when the fork met a thread that was opening it, with which it is lost.
    """
    if inherited is not None:
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
