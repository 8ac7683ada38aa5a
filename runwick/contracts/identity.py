"""Ids as they are stored (16 bytes) and as people see them (UUID text)."""

import uuid

from runwick.contracts.errors import InvalidArgument


def id_text(raw: bytes) -> str:
    """The UUID text of 16 raw bytes."""
    return str(uuid.UUID(bytes=raw))


def id_bytes(value: "str | uuid.UUID | bytes") -> bytes:
    """The 16 raw bytes of an id given as UUID, UUID text or raw bytes.

    Raises:
        InvalidArgument: it is none of these (code ``invalid_id``).
    """
    if isinstance(value, bytes) and len(value) == 16:
        return value
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, str):
        try:
            return uuid.UUID(value).bytes
        except ValueError:
            pass
    raise InvalidArgument(
        "invalid_id", f"an id is a UUID such as 0199c0de-0000-7000-8000-000000000000, this is {value!r}"
    )
