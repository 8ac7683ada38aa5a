"""Runwick: typed background jobs on forked executors, durable in your own store, with the cost of every run measured.

Names are resolved on first use, so that ``runwick.contracts`` alone loads msgspec and nothing else, and importing
`runwick` loads no database driver.
"""

import importlib
from typing import TYPE_CHECKING, Any

from runwick.version import __version__

if TYPE_CHECKING:
    from runwick.app.reasons import WaitView
    from runwick.app.runwick import Runwick
    from runwick.app.views import AttemptView, JobView
    from runwick.app.worker import EmbeddedWorker
    from runwick.config.options import (
        ExecutorOptions,
        JobDefaults,
        PostgresOptions,
        ProducerOptions,
        RedisOptions,
        SqliteOptions,
        WorkerOptions,
    )
    from runwick.contracts import (
        AdmissionClosed,
        BatchItem,
        BatchItemResult,
        BatchReceipt,
        Cancellation,
        CancellationCause,
        Cancelled,
        CommandExpired,
        ConfigurationError,
        ControlOutcomeUnknown,
        DispatchOptions,
        DispatchOutcomeUnknown,
        DispatchUniqueness,
        DispatchValidationError,
        Disposition,
        DuplicateMatch,
        Failed,
        Fence,
        InvalidArgument,
        ItemFailure,
        Job,
        JobCancelled,
        JobContext,
        JobNotFound,
        JobState,
        JobTarget,
        LaneSelection,
        LimitKind,
        LocalCapacityExceeded,
        ManagementActor,
        MigrationError,
        Next,
        NextAsync,
        OutcomeUnknown,
        PermanentJobFailure,
        PerResource,
        Prepared,
        PreparedBatch,
        Priority,
        Problem,
        Receipt,
        ReceiptDisposition,
        Resolution,
        ResolutionStatus,
        Result,
        Retry,
        RollingWindow,
        RollingWindowPerResource,
        RunwickError,
        StoreError,
        StoreHistoryBroken,
        StoreNotInstalled,
        StoreProfileMismatch,
        StoreRevisionMismatch,
        StoreUnavailable,
        Succeeded,
        UniquenessConflict,
        UniqueWithinWindow,
        Usage,
        UseMiddleware,
        WaitCode,
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
    # limit
    "PerResource",
    "RollingWindow",
    "RollingWindowPerResource",
    "UniqueWithinWindow",
    "Fence",
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
    "LaneSelection",
    "EmbeddedWorker",
    # options
    "ExecutorOptions",
    "JobDefaults",
    "PostgresOptions",
    "ProducerOptions",
    "RedisOptions",
    "SqliteOptions",
    "WorkerOptions",
    # dispatch
    "DispatchOptions",
    "DispatchUniqueness",
    "BatchItem",
    "Receipt",
    "ReceiptDisposition",
    "DuplicateMatch",
    "BatchReceipt",
    "BatchItemResult",
    "Prepared",
    "PreparedBatch",
    "Resolution",
    "ResolutionStatus",
    # look
    "JobView",
    "AttemptView",
    "JobState",
    "WaitView",
    "WaitCode",
    "Usage",
    # act
    "JobTarget",
    "ManagementActor",
    "LimitKind",
    # errors
    "RunwickError",
    "Disposition",
    "InvalidArgument",
    "DispatchValidationError",
    "ItemFailure",
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
    "UniquenessConflict",
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
    "WaitView": "runwick.app.reasons",
    "AttemptView": "runwick.app.views",
    "EmbeddedWorker": "runwick.app.worker",
    "Pool": "runwick.declarations.pools",
    "ExecutorOptions": "runwick.config.options",
    "JobDefaults": "runwick.config.options",
    "PostgresOptions": "runwick.config.options",
    "ProducerOptions": "runwick.config.options",
    "RedisOptions": "runwick.config.options",
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
