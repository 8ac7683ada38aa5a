"""The migrations that a release brings for one kind of store, and the revision that they lead to.

They are files ``NNNN_name.sql`` in a folder of the store's, numbered from 1 without a gap, and never changed once
released.
"""

import functools
import hashlib
import re
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

_FILE_NAME: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


class Migration(NamedTuple):
    """One step of the schema, from the revision before it to `number`."""

    number: int
    name: str
    text: str
    checksum: str
    """SHA-256 of the file, in hexadecimal."""

    @property
    def label(self) -> str:
        return f"{self.number:04}_{self.name}"


class MigrationResult(msgspec.Struct, frozen=True):
    """What a migration did."""

    store_id: str
    """The store's identity as UUID text."""
    revision: int
    applied: tuple[str, ...]
    """The migrations applied now, e.g. ``0001_jobs``; empty when the store was up to date."""


@functools.cache
def migrations(folder: Path) -> tuple[Migration, ...]:
    """The migrations in `folder`, in order."""
    found: list[Migration] = []
    for file in sorted(folder.glob("*.sql")):
        match = _FILE_NAME.fullmatch(file.name)
        if match is None or int(match[1]) != len(found) + 1:
            raise AssertionError(f"{file} is not migration {len(found) + 1:04}_name.sql")
        content = file.read_bytes()
        checksum = hashlib.sha256(content).hexdigest()
        found.append(Migration(int(match[1]), match[2], content.decode(), checksum))
    return tuple(found)
