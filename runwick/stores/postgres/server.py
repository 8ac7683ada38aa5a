"""What a server must be, and how its sessions must be set, before anything is written through it."""

from typing import Final, NamedTuple

from runwick.contracts.errors import StoreError, StoreProfileMismatch

VERSION_MIN: Final = 16
VERSION_TESTED: Final = 18


class Server(NamedTuple):
    """What ``sql/server.sql`` answers."""

    version_number: int
    """Of the major version times 10,000."""
    version: str
    encoding: str
    standard_strings: str
    in_recovery: bool
    read_only: str
    synchronous_commit: str
    fsync: str


def examine(server: Server, shown: str, *, allow_unsafe_durability: bool) -> tuple[str, ...]:
    """Check what does not depend on the database's content.

    Args:
        server: what it said.
        shown: its address for people.
        allow_unsafe_durability: the operator accepts that confirmed work can be lost.

    Returns:
        What the operator should know although the store may be used, one sentence each.

    Raises:
        StoreError: ``server_version_unsupported`` or ``encoding_unsupported``.
        StoreProfileMismatch: it can lose what it confirmed, or takes no writes.
    """
    major = server.version_number // 10_000
    if major < VERSION_MIN:
        raise StoreError(
            "server_version_unsupported",
            f"{shown} is PostgreSQL {server.version}, Runwick needs {VERSION_MIN} or newer; upgrade the server",
        )
    if server.encoding != "UTF8":
        raise StoreError(
            "encoding_unsupported",
            f"the database {shown} has the encoding {server.encoding}, expected UTF8; create one with ENCODING 'UTF8'",
        )
    if server.in_recovery:
        raise _mismatch(f"{shown} is a replica, where nothing can be written; connect to the primary")
    if server.read_only != "off":
        raise _mismatch(
            f"sessions on {shown} are read-only; set default_transaction_read_only = off for the role and the database"
        )
    if server.standard_strings != "on":
        raise _mismatch(f"{shown} has standard_conforming_strings = {server.standard_strings}, expected on; set it on")
    unsafe = [f"{name} = off" for name in ("synchronous_commit", "fsync") if getattr(server, name) == "off"]
    if unsafe and not allow_unsafe_durability:
        raise _mismatch(
            f"{shown} has {' and '.join(unsafe)}, so that confirmed jobs could be lost; set it on (for the server, the "
            "database and the role), or state allow_unsafe_durability"
        )
    notes = [f"{shown} has {' and '.join(unsafe)}: confirmed jobs can be lost"] if unsafe else []
    if major > VERSION_TESTED:
        notes.append(
            f"{shown} is PostgreSQL {server.version}; Runwick is tested with {VERSION_MIN} to {VERSION_TESTED}"
        )
    return tuple(notes)


def _mismatch(sentence: str) -> StoreProfileMismatch:
    return StoreProfileMismatch("store_profile_mismatch", sentence)
