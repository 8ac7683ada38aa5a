"""What SQLite says when something goes wrong, and what that means to the caller: was anything written?

Before COMMIT is issued nothing is. Once it was issued, only two answers still prove that: the disk is full (the commit
record is the last thing written) and the lock is not free. Everything else leaves the outcome unknown.
"""

import sqlite3
from pathlib import Path
from typing import Final

from runwick.contracts.errors import (
    OutcomeUnknown,
    RunwickError,
    SettlementRejected,
    StoreError,
    StoreHistoryBroken,
    StoreNotInstalled,
    StoreUnavailable,
)

UNBINDABLE: Final = (OverflowError, UnicodeEncodeError)
"""What Python's `sqlite3` raises, besides its own errors, for a value that SQLite cannot hold."""

_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_OUT_OF_REACH: Final = frozenset(
    {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_INTERRUPT,
    }
)


def result_code(error: Exception) -> int | None:
    """SQLite's result code without its extension; None for an error that Python itself found."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_lock(error: Exception) -> bool:
    """Whether a lock was not free in time."""
    return result_code(error) in _LOCKED


def refuses_commit(error: Exception) -> bool:
    """Whether an error of COMMIT proves that it was not applied."""
    return is_lock(error) or result_code(error) == sqlite3.SQLITE_FULL


def before_commit(error: Exception, act: str, path: Path, wait_s: float) -> Exception:
    """The error to raise instead of `error`, which came up before COMMIT was issued: nothing was written.

    What only a mistake in Runwick can cause is returned as it is.
    """
    if (refusal := _refusal(error, path, wait_s)) is not None:
        return refusal
    if act == "settle" and isinstance(error, (sqlite3.IntegrityError, sqlite3.DataError, *UNBINDABLE)):
        return SettlementRejected("settlement_rejected", f"the store refused a value: {error}; nothing was written")
    return error


def at_commit(error: Exception, act: str, path: Path, wait_s: float) -> RunwickError:
    """The error to raise instead of `error`, which came up when COMMIT had been issued."""
    refusal = _refusal(error, path, wait_s)
    if refusal is not None and refuses_commit(error):
        return refusal
    return OutcomeUnknown(
        "outcome_unknown", f"the answer to the commit of {act} was lost ({error}); it may or may not be in {path}"
    )


def _refusal(error: Exception, path: Path, wait_s: float) -> StoreError | None:
    code = result_code(error)
    if is_lock(error):
        return StoreUnavailable(
            "store_unavailable",
            f"another process kept the write lock of {path} for more than {wait_s * 1000:.0f} ms; nothing was written; "
            "try again, and keep transactions of your own on that file short",
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(
            "store_unavailable", f"the disk of {path} is full; nothing was written; make room and try again"
        )
    if code in _DAMAGED:
        return StoreHistoryBroken(
            "store_history_broken", f"{path} is damaged ({error}); nothing was written; restore it from a backup"
        )
    if code in _OUT_OF_REACH:
        if not path.exists():
            return not_installed(path, "there is no file")
        return StoreUnavailable("store_unavailable", f"{path} cannot be used now ({error}); nothing was written")
    return None


def not_installed(path: Path, found: str) -> StoreNotInstalled:
    """The refusal of a place that holds no store; `found` says what is there instead."""
    return StoreNotInstalled(
        "store_not_installed",
        f"{path} is not a Runwick store ({found}); create it once with `runwick migrate --app MODULE`",
    )
