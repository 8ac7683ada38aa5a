"""The desk on a store: the operating system's user acts, who could read and change the store anyway."""

from collections.abc import Sequence

import msgspec

from runwick.cli.answers import ErrorPart
from runwick.cli.desks import Change, HandDispatch
from runwick.cli.failures import Rejected, error_with, or_unset
from runwick.contracts.controls import ControlAction, JobTarget
from runwick.contracts.limits import LimitKind
from runwick.contracts.listing import AuditFilter, JobFilter
from runwick.contracts.revealing import Secret
from runwick.management import bodies
from runwick.management.desk import Desk
from runwick.management.desk.refusing import refused_for_state
from runwick.management.permissions import Caller


class LocalDesk:
    """`OperatorDesk` on a `Desk`.

    Args:
        desk: of the application, or of its store alone.
        caller: who acts, with what he may.
    """

    is_remote = False

    def __init__(self, desk: Desk, caller: Caller) -> None:
        self._desk = desk
        self._caller = caller

    async def overview(self) -> bodies.OverviewBody:
        return await self._desk.overview(self._caller)

    async def types(self) -> bodies.TypeListBody:
        return await self._desk.types(self._caller)

    async def type(self, name: str) -> bodies.TypeDetailBody:
        return await self._desk.type(self._caller, name)

    async def jobs(self, chosen: JobFilter, cursor: str | None, limit: int) -> bodies.JobListBody:
        return await self._desk.jobs(self._caller, chosen, cursor, limit)

    async def job(self, job_id: str) -> bodies.JobDetailBody:
        return await self._desk.job(self._caller, job_id)

    async def why(self, job_id: str) -> bodies.WaitBody:
        return await self._desk.why(self._caller, job_id)

    async def control(self, action: ControlAction, target: JobTarget, change: Change) -> bodies.ControlBody:
        [done] = await self.control_many(action, [target], change)
        if done.code is not None:
            error = _error(done.code, f"job {done.job_id}", done, done.generation, done.state)
            if done.code == "invalid_state":
                message = f"{refused_for_state(action, done.state)}; nothing was done"
                error = msgspec.structs.replace(error, message=message)
            raise Rejected(error)
        return done

    async def control_many(
        self, action: ControlAction, targets: Sequence[JobTarget], change: Change
    ) -> Sequence[bodies.ControlBody]:
        return await self._desk.control(self._caller, action, targets, change.reason, change.command_id)

    async def reveal(self, what: Secret, job_id: str, attempt_id: str | None, change: Change) -> bodies.RevealBody:
        return await self._desk.reveal(self._caller, what, job_id, attempt_id, change.reason, change.command_id)

    async def dispatch(self, asked: HandDispatch, change: Change) -> bodies.DispatchBody:
        return await self._desk.dispatch(
            self._caller,
            asked.name,
            asked.payload,
            queue=asked.queue,
            priority=asked.priority,
            delay_ms=asked.delay_ms,
            tenant=asked.tenant,
            reason=change.reason,
            command_id=change.command_id,
        )

    async def queues(self) -> bodies.QueueListBody:
        return await self._desk.queues(self._caller)

    async def pause(self, queue: str, expected_revision: int, change: Change) -> bodies.SteerBody:
        return _steered(
            f"queue {queue}",
            await self._desk.pause(self._caller, queue, expected_revision, change.reason, change.command_id),
        )

    async def resume(self, queue: str, expected_revision: int, change: Change) -> bodies.SteerBody:
        return _steered(
            f"queue {queue}",
            await self._desk.resume(self._caller, queue, expected_revision, change.reason, change.command_id),
        )

    async def workers(self) -> bodies.WorkerListBody:
        return await self._desk.workers(self._caller)

    async def scopes(self, kind: LimitKind | None, cursor: str | None, limit: int) -> bodies.ScopeListBody:
        return await self._desk.scopes(self._caller, kind, cursor, limit)

    async def rates(self, kind: LimitKind | None, cursor: str | None, limit: int) -> bodies.RateListBody:
        return await self._desk.rates(self._caller, kind, cursor, limit)

    async def set_capacity(
        self, kind: LimitKind, key: str, capacity: int, expected_revision: int, change: Change
    ) -> bodies.SteerBody:
        return _steered(
            f"{kind.value} {key}",
            await self._desk.set_capacity(
                self._caller, kind, key, capacity, expected_revision, change.reason, change.command_id
            ),
        )

    async def events(self, after: str | None, limit: int) -> bodies.EventListBody:
        return await self._desk.events(self._caller, after, limit)

    async def audit(self, chosen: AuditFilter, cursor: str | None, limit: int) -> bodies.AuditListBody:
        return await self._desk.audit(self._caller, chosen, cursor, limit)

    async def settings(self) -> bodies.SettingsBody:
        return await self._desk.settings(self._caller)

    async def aclose(self) -> None:
        """The store is closed by whoever opened it."""


def _steered(what: str, done: bodies.SteerBody) -> bodies.SteerBody:
    if done.code is not None:
        raise Rejected(_error(done.code, what, done, None, done.after))
    return done


def _error(
    code: str, what: str, done: bodies.ControlBody | bodies.SteerBody, generation: int | None, state: str | None
) -> ErrorPart:
    """As the API tells a target that is missing or stands otherwise."""
    is_missing = code == "not_found"
    message = f"there is no {what} here" if is_missing else f"{what} stands otherwise than this needs"
    return msgspec.structs.replace(
        error_with(code, f"{message}; nothing was done", done.command_id),
        actual_generation=or_unset(generation),
        actual_revision=or_unset(done.revision),
        actual_state=or_unset(None if state is None else str(state)),
    )
