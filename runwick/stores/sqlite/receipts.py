"""What a dispatch of this store answers."""

from typing import Final

from runwick.contracts.dispatching import DuplicateMatch, Receipt, ReceiptDisposition

PROFILE: Final = "sqlite.wal-full"
"""What a receipt of this store confirms: the commit is in the write-ahead log and the log is on the disk."""


def created(job_id: bytes, operation_id: bytes) -> Receipt:
    """Of an operation that created its job."""
    return Receipt(job_id, operation_id, ReceiptDisposition.CREATED, PROFILE)


def reused(operation_id: bytes, job_id: bytes, match: DuplicateMatch, drift: bool) -> Receipt:
    """Of one that found an existing job."""
    return Receipt(job_id, operation_id, ReceiptDisposition.REUSED, PROFILE, match, policy_drift=drift)
