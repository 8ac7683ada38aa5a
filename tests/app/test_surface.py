"""What a user imports, and what that loads."""

import subprocess
import sys

import pytest

import runwick

SURFACE = [
    "AdmissionClosed",
    "AttemptView",
    "BatchItem",
    "BatchItemResult",
    "BatchReceipt",
    "Cancellation",
    "CancellationCause",
    "Cancelled",
    "CommandExpired",
    "ConfigurationError",
    "ControlOutcomeUnknown",
    "DispatchOptions",
    "DispatchOutcomeUnknown",
    "DispatchUniqueness",
    "DispatchValidationError",
    "Disposition",
    "DuplicateMatch",
    "EmbeddedWorker",
    "ExecutorOptions",
    "Failed",
    "Fence",
    "InvalidArgument",
    "ItemFailure",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobDefaults",
    "JobNotFound",
    "JobState",
    "JobTarget",
    "JobView",
    "LaneSelection",
    "LimitKind",
    "LocalCapacityExceeded",
    "ManagementActor",
    "MigrationError",
    "Next",
    "NextAsync",
    "OutcomeUnknown",
    "PerResource",
    "PermanentJobFailure",
    "Pool",
    "PostgresOptions",
    "Prepared",
    "PreparedBatch",
    "Priority",
    "Problem",
    "ProducerOptions",
    "Receipt",
    "ReceiptDisposition",
    "RedisOptions",
    "Resolution",
    "ResolutionStatus",
    "Result",
    "Retry",
    "RollingWindow",
    "RollingWindowPerResource",
    "Runwick",
    "RunwickError",
    "SqliteOptions",
    "StoreError",
    "StoreHistoryBroken",
    "StoreNotInstalled",
    "StoreProfileMismatch",
    "StoreRevisionMismatch",
    "StoreUnavailable",
    "Succeeded",
    "UniqueWithinWindow",
    "UniquenessConflict",
    "Usage",
    "UseMiddleware",
    "WaitCode",
    "WaitTimeout",
    "WaitView",
    "WorkerOptions",
    "__version__",
    "job",
]


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `statement`."""
    program = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    return set(subprocess.check_output([sys.executable, "-c", program], text=True).split())


def test_the_public_surface_is_this_and_nothing_else() -> None:
    assert sorted(runwick.__all__) == sorted(SURFACE)
    assert dir(runwick) == sorted(SURFACE)
    for name in SURFACE:
        assert getattr(runwick, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'runwick' has no attribute 'Rnwick'"):
        runwick.Rnwick  # noqa: B018


def test_the_parts_agree_with_the_contracts() -> None:
    from runwick import contracts

    assert set(contracts.__all__) <= set(runwick.__all__)


def test_importing_runwick_loads_next_to_nothing() -> None:
    assert {name for name in loaded_by("import runwick") if not name.startswith("runwick")} <= loaded_by(
        "import importlib, typing"
    )


def test_job_types_load_msgspec_and_nothing_else() -> None:
    foreign = loaded_by("from runwick import Job, job")
    rooms = {name.split(".")[1] for name in foreign if name.startswith("runwick.")}
    assert rooms <= {"contracts", "version"}
    assert foreign.isdisjoint({"asyncio", "sqlite3", "click", "psycopg", "redis", "psutil", "croniter"})
    assert "msgspec" in foreign


def test_an_application_loads_no_driver_before_it_uses_one() -> None:
    statement = "from runwick import Runwick; Runwick('shop', store='memory://').problems()"
    assert loaded_by(statement).isdisjoint({"sqlite3", "click", "psycopg", "redis", "psutil", "croniter"})
