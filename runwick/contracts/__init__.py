"""The vocabulary of Runwick. It loads msgspec and nothing else, so that a package of shared job types stays light."""

from runwick.contracts.context import JobContext
from runwick.contracts.dispatching import BatchItem, BatchReceipt, DispatchOptions, Receipt
from runwick.contracts.errors import (
    ConfigurationError,
    DispatchValidationError,
    Disposition,
    InvalidArgument,
    JobNotFound,
    MigrationError,
    OutcomeUnknown,
    PermanentJobFailure,
    Problem,
    RunwickError,
    StoreError,
    StoreNotInstalled,
    StoreProfileMismatch,
    StoreRevisionMismatch,
    StoreUnavailable,
    WaitTimeout,
)
from runwick.contracts.jobs import Job, job
from runwick.contracts.states import JobState, Priority
from runwick.contracts.usage import Usage

__all__ = [
    "BatchItem",
    "BatchReceipt",
    "ConfigurationError",
    "DispatchOptions",
    "DispatchValidationError",
    "Disposition",
    "InvalidArgument",
    "Job",
    "JobContext",
    "JobNotFound",
    "JobState",
    "MigrationError",
    "OutcomeUnknown",
    "PermanentJobFailure",
    "Priority",
    "Problem",
    "Receipt",
    "RunwickError",
    "StoreError",
    "StoreNotInstalled",
    "StoreProfileMismatch",
    "StoreRevisionMismatch",
    "StoreUnavailable",
    "Usage",
    "WaitTimeout",
    "job",
]
