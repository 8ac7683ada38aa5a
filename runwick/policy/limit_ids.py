"""The ids of limits and uniqueness keys: 16 bytes that name the same thing in every store.

They are the first half of a SHA-256 of what the thing is, so a dispatch never asks a store for a number, and hitting
somebody else's key would take a second preimage. The parts are joined by NUL, which no name and no key can hold.
"""

import hashlib
from typing import Final

from runwick.contracts.limits import LimitKind

ID_BYTES: Final = 16


def scope_id(application: str, kind: LimitKind, key: str) -> bytes:
    """Of a scope. A resource's key is shared by all job types of the application."""
    return _digest("scope", application, kind.value, key)


def rate_id(application: str, kind: LimitKind, key: str, window_ms: int | None) -> bytes:
    """Of a rate window. A resource may have windows of several lengths, each of its own; a job type has one, whose
    length is no part of what it is: `window_ms` is None."""
    return _digest("rate", application, kind.value, key, "" if window_ms is None else str(window_ms))


def active_id(application: str, name: str, key: str) -> bytes:
    """Of the active key of the jobs of one name."""
    return _digest("active", application, name, key)


def window_id(application: str, name: str, key: str) -> bytes:
    """Of the window key of the jobs of one name."""
    return _digest("window", application, name, key)


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode()).digest()[:ID_BYTES]
