"""The one desk that commands know, whether it works on a store or asks a server."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from runwick.contracts.controls import ControlAction, JobTarget
from runwick.contracts.limits import LimitKind
from runwick.contracts.listing import AuditFilter, JobFilter
from runwick.contracts.revealing import Secret
from runwick.contracts.states import PriorityName
from runwick.management import bodies


class HandDispatch(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is created by hand. What is None is as the job's type says."""

    name: str
    payload: bytes
    """JSON of its record."""
    queue: str | None = None
    priority: PriorityName | None = None
    delay_ms: int | None = None
    tenant: str | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What every change carries."""

    command_id: str
    reason: str | None = None


class OperatorDesk(Protocol):
    """As `runwick.management.desk.Desk`, for one caller. What is refused for how a target stands is raised.

    Raises (all methods):
        RunwickError: `Rejected` where a target is missing or has changed, `Unreachable` where nobody answers, and
            whatever the desk raises.
    """

    @property
    def is_remote(self) -> bool:
        """It asks a server, which counts how often."""
        ...

    async def overview(self) -> bodies.OverviewBody: ...
    async def types(self) -> bodies.TypeListBody: ...
    async def type(self, name: str) -> bodies.TypeDetailBody: ...
    async def jobs(self, chosen: JobFilter, cursor: str | None, limit: int) -> bodies.JobListBody: ...
    async def job(self, job_id: str) -> bodies.JobDetailBody: ...
    async def why(self, job_id: str) -> bodies.WaitBody: ...
    async def control(self, action: ControlAction, target: JobTarget, change: Change) -> bodies.ControlBody: ...
    async def control_many(
        self, action: ControlAction, targets: Sequence[JobTarget], change: Change
    ) -> Sequence[bodies.ControlBody]:
        """Up to 100 of them; what is refused of them is told in the answers."""
        ...

    async def reveal(self, what: Secret, job_id: str, attempt_id: str | None, change: Change) -> bodies.RevealBody: ...
    async def dispatch(self, asked: HandDispatch, change: Change) -> bodies.DispatchBody: ...
    async def queues(self) -> bodies.QueueListBody: ...
    async def pause(self, queue: str, expected_revision: int, change: Change) -> bodies.SteerBody: ...
    async def resume(self, queue: str, expected_revision: int, change: Change) -> bodies.SteerBody: ...
    async def workers(self) -> bodies.WorkerListBody: ...
    async def scopes(self, kind: LimitKind | None, cursor: str | None, limit: int) -> bodies.ScopeListBody: ...
    async def rates(self, kind: LimitKind | None, cursor: str | None, limit: int) -> bodies.RateListBody: ...
    async def set_capacity(
        self, kind: LimitKind, key: str, capacity: int, expected_revision: int, change: Change
    ) -> bodies.SteerBody: ...
    async def events(self, after: str | None, limit: int) -> bodies.EventListBody: ...
    async def audit(self, chosen: AuditFilter, cursor: str | None, limit: int) -> bodies.AuditListBody: ...
    async def settings(self) -> bodies.SettingsBody: ...
    async def aclose(self) -> None:
        """Give back what it holds for the event loop."""
        ...
