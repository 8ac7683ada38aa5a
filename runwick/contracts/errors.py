"""Every error Runwick raises, in one tree.

::

    RunwickError                         code, disposition, message
    ├── InvalidArgument                  a call that cannot mean anything (also a ValueError)
    │   └── DispatchValidationError      a job, option or payload breaks a rule; `item_failures` for a batch
    ├── ConfigurationError               everything wrong with a configuration at once; `problems`
    ├── StoreError                       the store refused or could not be reached; nothing was written
    │   ├── StoreNotInstalled            there is no store here: run `runwick migrate`
    │   ├── StoreProfileMismatch         the store's settings could lose jobs
    │   ├── StoreRevisionMismatch        the store belongs to another release
    │   ├── StoreHistoryBroken           another store than before, or one that went back in time
    │   ├── AdmissionClosed              an operator drains the application, or maintains the store
    │   ├── CommandExpired               a dispatch came after its deadline; it is never applied
    │   ├── UniquenessConflict           a uniqueness key belongs to another request
    │   ├── StoreUnavailable             no answer, and nothing was sent
    │   ├── SettlementRejected           the content of a settlement cannot be stored
    │   └── MigrationError               a migration stopped; the code says where
    ├── LocalCapacityExceeded            too many calls of this process are under way; nothing was sent
    ├── OutcomeUnknown                   the write may or may not have happened
    │   ├── DispatchOutcomeUnknown       of a dispatch; `operation_id` and `prepared` settle it
    │   └── ControlOutcomeUnknown        of a control; sending it again with `command_id` settles it
    ├── JobNotFound                      no job with that id is visible here
    └── WaitTimeout                      the job had not ended in time (also a TimeoutError); it goes on

    PermanentJobFailure                  raised by handlers: retrying cannot help
    JobCancelled                         raised in handlers whose run is asked to stop (a BaseException)

`code` is stable and listed in `runwick.contracts.codes`. `disposition` answers "was anything written?".
"""

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from runwick.contracts.cancelling import CancellationCause

if TYPE_CHECKING:
    from runwick.contracts.dispatching import Prepared, PreparedBatch


class Disposition(enum.StrEnum):
    """Whether the call that raised may have written something."""

    KNOWN_NOT_APPLIED = "known_not_applied"
    """Nothing was written; it is safe to mend the input and try again."""
    OUTCOME_UNKNOWN = "outcome_unknown"
    """The write may or may not have happened."""


class RunwickError(Exception):
    """The root of the tree. Its text reads ``code: message``."""

    disposition = Disposition.KNOWN_NOT_APPLIED

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class InvalidArgument(RunwickError, ValueError):
    """A call that cannot mean anything."""


class ItemFailure(msgspec.Struct, frozen=True):
    """One invalid item of a batch."""

    ordinal: int
    """0-based position in the caller's input."""
    code: str
    message: str
    conflicting_job_id: str | None = None
    """For a uniqueness conflict, the existing job, as UUID text."""


class DispatchValidationError(InvalidArgument):
    """A job, an option or a payload breaks a rule; nothing was sent.

    For a batch, `item_failures` lists every invalid item, in input order, and `code` is the first one's.
    """

    def __init__(self, code: str, message: str, item_failures: Sequence[ItemFailure] = ()) -> None:
        super().__init__(code, message)
        self.item_failures = tuple(item_failures)


class Problem(msgspec.Struct, frozen=True, order=True):
    """One thing wrong with a configuration: what was expected, what came, what to do."""

    code: str
    setting: str
    """The option, pool, job or flag it is about, as the user wrote it."""
    message: str

    @property
    def text(self) -> str:
        """The message with its setting in front, unless it begins with it already."""
        if self.message.startswith(self.setting):
            return self.message
        return f"{self.setting}: {self.message}"


class ConfigurationError(RunwickError):
    """A configuration that cannot run safely, with every problem at once; nothing was started."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [f"[{p.code}] {p.text}" for p in self.problems]
        super().__init__(self.problems[0].code, "the configuration is invalid:\n  " + "\n  ".join(lines))


class StoreError(RunwickError):
    """The store refused or could not be reached; nothing was written."""


class StoreNotInstalled(StoreError):
    """There is no Runwick store where the configuration points (code ``store_not_installed``)."""


class StoreProfileMismatch(StoreError):
    """The store's settings could lose confirmed jobs."""


class StoreRevisionMismatch(StoreError):
    """The store's revision is not the one this release works with."""


class StoreHistoryBroken(StoreError):
    """The store is another one than this process knew, it went back in time, or it is damaged; nothing was written.

    A worker that meets this stops its runs, writes nothing more and ends: whoever keeps it starts another one.
    """


class AdmissionClosed(StoreError):
    """The application is drained or the store maintained; nothing was written (code ``admission_closed``)."""


class CommandExpired(StoreError):
    """A dispatch came after its deadline: it was not applied and never will be (code ``command_expired``)."""


class UniquenessConflict(StoreError):
    """A window key is held by another request (code ``uniqueness_conflict``), or the two keys of one dispatch belong to
    two jobs (code ``uniqueness_composition_conflict``). Of the whole batch nothing was written."""

    def __init__(self, code: str, message: str, *, conflicting_job_id: str, ordinal: int = 0) -> None:
        super().__init__(code, message)
        self.conflicting_job_id = conflicting_job_id
        """The existing job, as UUID text."""
        self.ordinal = ordinal
        """Which input of a batch it was, from 0."""


class StoreUnavailable(StoreError):
    """The store gave no answer in time, and nothing was applied (code ``store_unavailable``)."""


class SettlementRejected(StoreError):
    """A batch of settlements was refused for the content of one of them; nothing of it was written."""


class MigrationError(StoreError):
    """A migration stopped; the store stays at its last good revision."""


class OutcomeUnknown(RunwickError):
    """The command was sent and its answer was lost: it may or may not have been applied."""

    disposition = Disposition.OUTCOME_UNKNOWN


class DispatchOutcomeUnknown(OutcomeUnknown):
    """A dispatch may or may not have been applied (code ``outcome_unknown``, ``cancelled_after_send`` or
    ``expired_unknown``).

    Sending `prepared` again is safe and gives the definite answer; `rw.resolve(operation_id)` asks without sending.
    """

    def __init__(self, code: str, message: str, prepared: "Prepared | PreparedBatch | None" = None) -> None:
        super().__init__(code, message)
        self.prepared = prepared

    @property
    def operation_id(self) -> str | None:
        """Of a single dispatch, as UUID text."""
        return getattr(self.prepared, "operation_id", None)


class ControlOutcomeUnknown(OutcomeUnknown):
    """A control may or may not have been applied (code ``outcome_unknown``); the same command id settles it."""

    def __init__(self, code: str, message: str, command_id: str) -> None:
        super().__init__(code, message)
        self.command_id = command_id


class LocalCapacityExceeded(RunwickError):
    """Too many calls of this process are under way or waiting; nothing was sent (code ``local_capacity_exceeded``)."""


class JobNotFound(RunwickError):
    """No job with that id exists in this application."""


class WaitTimeout(RunwickError, TimeoutError):
    """The job that was waited for had not ended in time; it goes on (code ``wait_timeout``)."""


class JobCancelled(BaseException):
    """Raised in a handler whose run is asked to stop. Like `KeyboardInterrupt` it is no `Exception`: clean up in
    ``finally``, and let it pass.

    Args:
        causes: why, all that is known so far.
    """

    def __init__(self, causes: CancellationCause) -> None:
        super().__init__(causes)
        self.causes = causes

    def __str__(self) -> str:
        return f"the run is asked to stop: {self.causes.name}"


class PermanentJobFailure(Exception):
    """Raise it in a handler when retrying cannot help.

    Args:
        code: the application's own code, in the grammar of names (up to 128 characters).
        message: what happened, for people; cut at 1,024 bytes.
    """

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code
