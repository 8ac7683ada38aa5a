"""What a producer hands in and what it gets back."""

import datetime
import enum
from collections.abc import Mapping, Sequence

import msgspec

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.identity import id_text
from runwick.contracts.jobs import UNSET, Job, Unset
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import PriorityName

BATCH_MAX_ITEMS = 100
BATCH_MAX_BYTES = 2 * 1024 * 1024
METADATA_MAX_ENTRIES = 32
METADATA_MAX_BYTES = 16 * 1024


class DispatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to one dispatch; what is not given comes from the job's declaration."""

    queue: str | Unset = UNSET
    """Another registered queue."""
    priority: PriorityName | Unset = UNSET
    not_before: datetime.datetime | datetime.timedelta | None = None
    """The earliest start: an aware datetime, or a delay counted by the store's clock. Rounded up to a millisecond."""
    metadata: Mapping[str, str] | None = None
    """Business metadata: at most 32 entries and 16 KiB; keys are names, values text without control characters."""
    tenant: str | None = None
    """The tenant the job belongs to; None is the default tenant."""
    expires_at: datetime.datetime | datetime.timedelta | None = None
    """A job not begun by then fails with ``expired`` instead of running."""


class BatchItem(msgspec.Struct, frozen=True):
    """One job of a batch."""

    job: Job
    options: DispatchOptions | None = None


class Command(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One dispatch, checked and serialised, ready to be sent as often as needed."""

    operation_id: bytes
    job_id: bytes
    application: str
    kind: Kind
    lane: Lane
    policy: JobPolicy
    payload: bytes
    not_before_ms: int | None = None
    """A point in time, milliseconds since the epoch."""
    delay_ms: int | None = None
    """Or a delay from the store's now; never both."""
    expires_at_ms: int | None = None
    expires_in_ms: int | None = None
    metadata: bytes | None = None
    tenant: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None

    def due_at_ms(self, now_ms: int) -> int:
        """When the job is due, by the store's clock. A time in the past means now: it overtakes nobody who waits."""
        if self.delay_ms is not None:
            return now_ms + self.delay_ms
        return max(now_ms, self.not_before_ms or 0)

    def expiry_ms(self, now_ms: int) -> int | None:
        """By when it must have begun; None when it never expires."""
        return self.expires_at_ms if self.expires_in_ms is None else now_ms + self.expires_in_ms


class ReceiptDisposition(enum.StrEnum):
    """What the dispatch did. Uniqueness keys will be able to find an existing job."""

    CREATED = "created"


class Receipt(msgspec.Struct, frozen=True):
    """The proof of a confirmed dispatch. It names the job; it is not a snapshot of its state."""

    job: bytes
    operation: bytes
    disposition: ReceiptDisposition
    confirmed_profile: str
    """The durability rule that the store confirmed, e.g. ``sqlite.wal-full``."""

    @property
    def job_id(self) -> str:
        """The job's permanent id as UUID text; the same across retries."""
        return id_text(self.job)

    @property
    def operation_id(self) -> str:
        """The id of this dispatch command as UUID text."""
        return id_text(self.operation)

    def __repr__(self) -> str:
        return f"Receipt(job_id={self.job_id}, {self.disposition.value})"


class BatchItemResult(msgspec.Struct, frozen=True):
    """The result for one input of a batch."""

    ordinal: int
    receipt: Receipt


class BatchReceipt(msgspec.Struct, frozen=True):
    """The proof of a confirmed batch: one result per input, in input order."""

    items: Sequence[BatchItemResult]

    @property
    def receipts(self) -> list[Receipt]:
        """The receipts alone, in input order."""
        return [item.receipt for item in self.items]
