"""Why a run is asked to stop, and how its handler sees that."""

import datetime
import enum
from typing import Protocol


class CancellationCause(enum.Flag):
    """Why a run is asked to stop; several may be true at once."""

    USER_REQUESTED = 1
    """Somebody cancelled the job."""
    TIMEOUT = 2
    """It ran for longer than its time limit."""
    SHUTDOWN = 4
    """The worker stops."""
    LEASE_LOST = 8
    """The job is no longer this worker's, or soon will not be: whatever the run does may be done twice."""


class Cancellation(Protocol):
    """The token of one run, as ``ctx.cancellation`` shows it. It may be used from any thread of the handler's."""

    @property
    def causes(self) -> CancellationCause:
        """Every cause so far; none of them as long as the run may go on."""
        ...

    def is_set(self) -> bool:
        """Whether the run is asked to stop."""
        ...

    def raise_if_set(self) -> None:
        """Go on, or end here.

        Raises:
            JobCancelled: the run is asked to stop.
        """
        ...

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Wait until the run is asked to stop, or for `timeout`; answers `is_set()`. It blocks its thread."""
        ...
