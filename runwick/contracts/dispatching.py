"""What a producer hands in and what it gets back."""

import datetime
import enum
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.errors import ItemFailure
from runwick.contracts.identity import id_text
from runwick.contracts.jobs import UNSET, Job, Unset
from runwick.contracts.limits import RateNeed, ScopeNeed
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import PriorityName

BATCH_MAX_ITEMS = 100
BATCH_MAX_BYTES = 2 * 1024 * 1024
METADATA_MAX_ENTRIES = 32
METADATA_MAX_BYTES = 16 * 1024
COMMAND_LIFETIME_MAX_MS = 5 * 60 * 1000
"""How long a dispatch can be applied after it was prepared, at most."""
ANSWERS_KEPT_MS = 24 * 60 * 60 * 1000
"""For how long after its deadline a dispatch that is sent again gets a definite answer."""


UNIQUE_WINDOW_MAX_MS = 3_650 * 24 * 60 * 60 * 1000


class DispatchUniqueness(msgspec.Struct, frozen=True):
    """Keys of one dispatch, where the job's declaration requires none or the same. Keys belong to the application and
    the job's name."""

    active_key: str | None = None
    """While a job with it waits or runs, another dispatch answers that job instead."""
    window_key: str | None = None
    """For the length of `window` after the first dispatch with it, the same request answers the same job."""
    window: datetime.timedelta | None = None
    """Goes with `window_key`: whole milliseconds, up to 3,650 days."""


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
    uniqueness: DispatchUniqueness | None = None


class BatchItem(msgspec.Struct, frozen=True):
    """One job of a batch."""

    job: Job
    options: DispatchOptions | None = None


class Command(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One dispatch, checked and serialised, ready to be sent as often as needed."""

    operation_id: bytes
    job_id: bytes
    """`job_of_operation` of the operation."""
    application: str
    kind: Kind
    lane: Lane
    policy: JobPolicy
    payload: bytes
    deadline_ms: int
    """By the store's clock: it is never applied later."""
    store_id: bytes | None = None
    """The store it is meant for, where that was known; another store refuses it."""
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
    active_key: str | None = None
    window_key: str | None = None
    window_ms: int | None = None
    """Of the window key, from 1 to `UNIQUE_WINDOW_MAX_MS`."""
    fingerprint: bytes | None = None
    """32 bytes that name the request; there with a window key alone."""
    scopes: tuple[ScopeNeed, ...] = ()
    """In the order declared, each key once. The store keeps the resources with the job; scopes of its queue and type
    are only created from this: a claim judges by what the store has."""
    rates: tuple[RateNeed, ...] = ()

    def due_at_ms(self, now_ms: int) -> int:
        """When the job is due, by the store's clock. A time in the past means now: it overtakes nobody who waits."""
        if self.delay_ms is not None:
            return now_ms + self.delay_ms
        return max(now_ms, self.not_before_ms or 0)

    def expiry_ms(self, now_ms: int) -> int | None:
        """By when it must have begun; None when it never expires."""
        return self.expires_at_ms if self.expires_in_ms is None else now_ms + self.expires_in_ms


class Prepared(msgspec.Struct, frozen=True):
    """One dispatch, fixed before it is sent: the same job however often that is.

    Keep `operation_id`, or the bytes of `export`, before sending: then a crash in between leaves no doubt.
    """

    command: Command

    @property
    def operation_id(self) -> str:
        """As UUID text; `rw.resolve` takes it."""
        return id_text(self.command.operation_id)

    @property
    def job_id(self) -> str:
        """The id that the job has or will have, as UUID text."""
        return id_text(self.command.job_id)

    @property
    def deadline(self) -> datetime.datetime:
        """Until when it can be applied, by the store's clock."""
        return _deadline((self.command,))

    def export(self) -> bytes:
        """Bytes to store, which `rw.import_prepared` reads back. They hold the payload as it is: never log them."""
        return exported(EXPORT_ONE, (self.command,))

    def __repr__(self) -> str:
        return f"Prepared(operation_id={self.operation_id})"


class PreparedBatch(msgspec.Struct, frozen=True):
    """A batch, fixed before it is sent. It is applied whole or not at all."""

    commands: tuple[Command, ...]
    continue_on_conflict: bool = False
    """Items that meet a uniqueness conflict fail alone; all others are applied together."""

    @property
    def operation_ids(self) -> list[str]:
        """As UUID text, in input order."""
        return [id_text(command.operation_id) for command in self.commands]

    @property
    def deadline(self) -> datetime.datetime:
        """Until when it can be applied, by the store's clock; that of an empty batch never comes."""
        return _deadline(self.commands)

    def export(self) -> bytes:
        """As `Prepared.export`."""
        return exported(EXPORT_BATCH, self.commands, continue_on_conflict=self.continue_on_conflict)

    def __repr__(self) -> str:
        return f"PreparedBatch({len(self.commands)} jobs)"


EXPORT_ONE = "runwick.prepared 1"
EXPORT_BATCH = "runwick.prepared-batch 1"
"""What exported bytes begin with: their form and its version."""


def exported(form: str, commands: Sequence[Command], *, continue_on_conflict: bool = False) -> bytes:
    """A prepared request as MessagePack: its form, whether conflicts fail items alone, then its commands."""
    return msgspec.msgpack.encode((form, continue_on_conflict, *commands))


def _deadline(commands: Sequence[Command]) -> datetime.datetime:
    if not commands:
        return datetime.datetime.max.replace(tzinfo=datetime.UTC)
    since_epoch = datetime.timedelta(milliseconds=min(command.deadline_ms for command in commands))
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + since_epoch


class ResolutionStatus(enum.StrEnum):
    """What a store knows of one dispatch operation."""

    CONFIRMED = "confirmed"
    NOT_OBSERVED = "not_observed"
    """It was not applied so far. That is no proof that it never will be: it may still be under way."""
    EXPIRED_UNKNOWN = "expired_unknown"
    """It is not there, and so long past its deadline that the store no longer keeps a definite answer."""


class Resolution(msgspec.Struct, frozen=True):
    """The answer to `rw.resolve`."""

    status: ResolutionStatus
    receipt: "Receipt | None" = None
    """The original receipt, when it is confirmed."""


class ReceiptDisposition(enum.StrEnum):
    """What the dispatch did."""

    CREATED = "created"
    REUSED = "reused"
    """A uniqueness key found an existing job; nothing was created, and this payload was not stored."""


class DuplicateMatch(enum.StrEnum):
    """Which key found the existing job."""

    NONE = "none"
    ACTIVE = "active"
    WINDOW = "window"
    ACTIVE_AND_WINDOW = "active_and_window"


class Receipt(msgspec.Struct, frozen=True):
    """The proof of a confirmed dispatch. It names the job; it is not a snapshot of its state."""

    job: bytes
    operation: bytes
    disposition: ReceiptDisposition
    confirmed_profile: str
    """The durability rule that the store confirmed, e.g. ``sqlite.wal-full``."""
    duplicate_match: DuplicateMatch = DuplicateMatch.NONE
    policy_drift: bool = False
    """The existing job was dispatched with other retry settings, and keeps them."""

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
    """The result for one input of a batch: a receipt, or why it failed alone."""

    ordinal: int
    receipt: Receipt | None
    failure: ItemFailure | None = None


class BatchReceipt(msgspec.Struct, frozen=True):
    """The proof of a confirmed batch: one result per input, in input order. Iterating over it gives the receipts."""

    items: Sequence[BatchItemResult]

    @property
    def receipts(self) -> list[Receipt]:
        """The receipts alone, in input order; those of items that failed alone are not there."""
        return [item.receipt for item in self.items if item.receipt is not None]

    def __iter__(self) -> Iterator[Receipt]:
        return iter(self.receipts)

    def __len__(self) -> int:
        return len(self.receipts)
