"""What a handler may know about the run it is in."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from runwick.contracts.cancelling import Cancellation
from runwick.contracts.limits import Fence


class JobContext(Protocol):
    """Read-only facts about the current run; take it as a parameter annotated ``JobContext``.

    It has no database connection, no lease and no way to extend either. Everything except `items` stays the same
    for the whole run.
    """

    @property
    def application(self) -> str: ...
    @property
    def job_id(self) -> str:
        """The job's permanent id (UUID text); stable across retries, so a good idempotency key."""
        ...

    @property
    def attempt_id(self) -> str:
        """The id of this one attempt (UUID text); new on every try."""
        ...

    @property
    def job_name(self) -> str: ...
    @property
    def created_at(self) -> datetime.datetime:
        """When the store created the job, aware, UTC."""
        ...

    @property
    def execution_number(self) -> int:
        """Which run this is within the generation, from 1."""
        ...

    @property
    def max_executions(self) -> int:
        """The run budget; `execution_number == max_executions` is the last automatic try."""
        ...

    @property
    def generation(self) -> int:
        """1 for the original dispatch; each manual retry or rerun opens the next."""
        ...

    @property
    def queue(self) -> str: ...
    @property
    def priority(self) -> str: ...
    @property
    def original_payload_version(self) -> int:
        """The version of the stored bytes."""
        ...

    @property
    def current_payload_version(self) -> int:
        """The version handed to the handler."""
        ...

    @property
    def serializer_profile_id(self) -> str: ...
    @property
    def serializer_profile_version(self) -> int: ...
    @property
    def payload(self) -> Any:
        """The record the handler received."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]: ...
    @property
    def tenant(self) -> str | None:
        """The tenant given at dispatch; None is the default tenant."""
        ...

    @property
    def trace(self) -> Mapping[str, str]:
        """``traceparent`` and ``tracestate`` captured at dispatch; empty when there were none."""
        ...

    @property
    def cancellation(self) -> Cancellation:
        """Whether and why this run is asked to stop."""
        ...

    @property
    def fences(self) -> Sequence[Fence]:
        """One fencing token for each resource of capacity 1 that this run holds, in the order declared. Hand it to the
        other side, which must refuse a lower one than it has seen."""
        ...

    @property
    def items(self) -> dict[Any, Any]:
        """A dictionary of this run; never saved."""
        ...
