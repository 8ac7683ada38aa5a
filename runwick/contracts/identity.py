"""Ids as they are stored (16 bytes) and as people see them (UUID text)."""

import uuid

from runwick.contracts.errors import InvalidArgument


def id_text(raw: bytes) -> str:
    """The UUID text of 16 raw bytes."""
    return str(uuid.UUID(bytes=raw))


def job_of_operation(operation_id: bytes) -> bytes:
    """The id of the job that a dispatch operation creates: its own with the last bit turned over.

    So the job's row is the receipt of the operation, found by either id, and both sort alike.
    """
    return operation_id[:15] + bytes((operation_id[15] ^ 1,))


def issued_at_ms(ordered: bytes) -> int:
    """When a UUIDv7 was made, in milliseconds since the epoch, by the clock of its maker."""
    return int.from_bytes(ordered[:6])


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
