"""Runwick: typed background jobs on forked executors, durable in your own store, with the cost of every run measured.

Names are resolved on first use, so that ``runwick.contracts`` alone loads msgspec and nothing else, and importing
`runwick` loads no database driver.
"""

import importlib
from typing import TYPE_CHECKING, Any

from runwick.version import __version__

if TYPE_CHECKING:
    from runwick.app.runwick import Runwick
    from runwick.app.views import AttemptView, JobView
    from runwick.app.worker import EmbeddedWorker
    from runwick.config.options import (
        ExecutorOptions,
        JobDefaults,
        PostgresOptions,
        ProducerOptions,
        SqliteOptions,
        WorkerOptions,
    )
    from runwick.contracts import (
        AdmissionClosed,
        BatchItem,
        BatchReceipt,
        Cancellation,
        CancellationCause,
        Cancelled,
        CommandExpired,
        ConfigurationError,
        ControlOutcomeUnknown,
        DispatchOptions,
        DispatchOutcomeUnknown,
        DispatchValidationError,
        Disposition,
        Failed,
        InvalidArgument,
        Job,
        JobCancelled,
        JobContext,
        JobNotFound,
        JobState,
        JobTarget,
        LocalCapacityExceeded,
        ManagementActor,
        MigrationError,
        Next,
        NextAsync,
        OutcomeUnknown,
        PermanentJobFailure,
        Prepared,
        PreparedBatch,
        Priority,
        Problem,
        Receipt,
        Resolution,
        ResolutionStatus,
        Result,
        Retry,
        RunwickError,
        StoreError,
        StoreHistoryBroken,
        StoreNotInstalled,
        StoreProfileMismatch,
        StoreRevisionMismatch,
        StoreUnavailable,
        Succeeded,
        Usage,
        UseMiddleware,
        WaitTimeout,
        job,
    )
    from runwick.declarations.pools import Pool

__all__ = [
    # declare
    "Runwick",
    "Job",
    "job",
    "JobContext",
    "UseMiddleware",
    "PermanentJobFailure",
    "Priority",
    # answer
    "Succeeded",
    "Retry",
    "Failed",
    "Cancelled",
    "Result",
    "Next",
    "NextAsync",
    # stop
    "Cancellation",
    "CancellationCause",
    "JobCancelled",
    # work
    "Pool",
    "EmbeddedWorker",
    # options
    "ExecutorOptions",
    "JobDefaults",
    "PostgresOptions",
    "ProducerOptions",
    "SqliteOptions",
    "WorkerOptions",
    # dispatch
    "DispatchOptions",
    "BatchItem",
    "Receipt",
    "BatchReceipt",
    "Prepared",
    "PreparedBatch",
    "Resolution",
    "ResolutionStatus",
    # look
    "JobView",
    "AttemptView",
    "JobState",
    "Usage",
    # act
    "JobTarget",
    "ManagementActor",
    # errors
    "RunwickError",
    "Disposition",
    "InvalidArgument",
    "DispatchValidationError",
    "ConfigurationError",
    "Problem",
    "StoreError",
    "StoreNotInstalled",
    "StoreProfileMismatch",
    "StoreRevisionMismatch",
    "StoreUnavailable",
    "StoreHistoryBroken",
    "AdmissionClosed",
    "CommandExpired",
    "LocalCapacityExceeded",
    "MigrationError",
    "OutcomeUnknown",
    "DispatchOutcomeUnknown",
    "ControlOutcomeUnknown",
    "JobNotFound",
    "WaitTimeout",
    "__version__",
]

_ELSEWHERE = {
    "Runwick": "runwick.app.runwick",
    "JobView": "runwick.app.views",
    "AttemptView": "runwick.app.views",
    "EmbeddedWorker": "runwick.app.worker",
    "Pool": "runwick.declarations.pools",
    "ExecutorOptions": "runwick.config.options",
    "JobDefaults": "runwick.config.options",
    "PostgresOptions": "runwick.config.options",
    "ProducerOptions": "runwick.config.options",
    "SqliteOptions": "runwick.config.options",
    "WorkerOptions": "runwick.config.options",
}
"""Where a public name lives that is not part of the contracts."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_ELSEWHERE.get(name, "runwick.contracts")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
