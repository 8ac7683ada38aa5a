"""What an operator does to jobs (cancel, retry, rerun, and look at a running one), to queues and to capacities."""

import enum
from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.identity import id_bytes, id_text
from runwick.contracts.limits import LimitKind
from runwick.contracts.states import JobState

TARGETS_MAX: Final = 100
"""Jobs of one command."""


class ManagementActor(msgspec.Struct, frozen=True):
    """Who acts. The service believes it; whoever builds one has proven it."""

    subject: str
    """The stable name: ``ops-bot``."""
    display: str
    """For people: ``Ops bot``."""
    scheme: str
    """How it was proven: ``service``, ``session``, ``os_user``…"""


class ControlAction(enum.StrEnum):
    CANCEL = "cancel"
    """A waiting job ends; a running one is asked to."""
    RETRY = "retry"
    """A failed or cancelled job gets a new generation with fresh budgets."""
    RERUN = "rerun"
    """A succeeded job gets a new generation with fresh budgets."""
    LOOK = "look"
    """The Python stack of a running attempt is asked for."""


class JobTarget(msgspec.Struct, frozen=True):
    """One job as the caller last saw it; if it has changed since, nothing is done to it."""

    job_id: bytes
    generation: int
    revision: int

    @classmethod
    def of(cls, job_id: str, generation: int, revision: int) -> "JobTarget":
        """The target with its id as UUID text.

        Raises:
            InvalidArgument: that is no id (code ``invalid_id``).
        """
        return cls(id_bytes(job_id), generation, revision)

    def __repr__(self) -> str:
        return f"JobTarget(job_id={id_text(self.job_id)}, generation={self.generation}, revision={self.revision})"


class ControlCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One action upon up to `TARGETS_MAX` different jobs of an application, in one transaction."""

    action: ControlAction
    command_id: bytes
    """Sent again, it answers what it answered first, and changes nothing."""
    application: str
    actor: ManagementActor
    reason: str | None
    targets: Sequence[JobTarget]


class ControlAnswer(msgspec.Struct, frozen=True):
    """What became of one target."""

    job_id: bytes
    code: str | None = None
    """None: done. Otherwise nothing was changed: ``not_found``, ``stale_generation``, ``stale_revision``,
    ``invalid_state``, or ``uniqueness_conflict`` where the job's active key is another job's by now."""
    state: JobState | None = None
    """Where the job stands now, like the next two; None for ``not_found``."""
    generation: int | None = None
    revision: int | None = None
    cancel_requested: bool = False
    """It runs and was asked to stop."""
    attempt_id: bytes | None = None
    """For a look: whose stack comes."""


class ControlReply(msgspec.Struct, frozen=True):
    """The answers, in the order of the targets."""

    answers: Sequence[ControlAnswer]
    replayed: bool = False
    """The command had been applied before; these are the answers of then."""


class SteerAction(enum.StrEnum):
    PAUSE = "pause"
    """Nothing more is claimed from a queue; what runs goes on, and dispatches are taken."""
    RESUME = "resume"
    SET_CAPACITY = "set_capacity"
    """Of a scope. Lowering it revokes nothing."""


class SteerCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One action upon one queue or scope of an application."""

    action: SteerAction
    command_id: bytes
    """Sent again, it answers what it answered first, and changes nothing."""
    application: str
    actor: ManagementActor
    reason: str | None
    kind: LimitKind
    """`LimitKind.QUEUE` for a pause and a resume."""
    key: str
    expected_revision: int
    """As the caller last saw it."""
    capacity: int | None = None
    """The new one."""


class SteerReply(msgspec.Struct, frozen=True):
    """What became of it."""

    code: str | None = None
    """None: done. Otherwise nothing was changed: ``not_found``, ``stale_revision``, or ``invalid_state`` where it is as
    asked for already."""
    revision: int | None = None
    """As it is now; None for ``not_found``."""
    before: str | None = None
    """``open``, ``paused``, or the capacity."""
    after: str | None = None
    replayed: bool = False
    """The command had been applied before; this is the answer of then."""
