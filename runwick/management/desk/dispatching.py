"""The desk's part for dispatching a job by hand: a payload that somebody typed becomes a job as the application's own
dispatch would make it, with a row in the audit trail.

::

    within reach? ▸ strict JSON, the record, the options ▸ job + audit row, once for one command id
"""

import datetime
from typing import NoReturn

import msgspec

from runwick.contracts.dispatching import DispatchOptions, Receipt, ReceiptDisposition
from runwick.contracts.errors import InvalidArgument, ItemFailure, StoreError, UniquenessConflict
from runwick.contracts.identity import job_of_operation
from runwick.contracts.jobs import UNSET
from runwick.contracts.states import PriorityName
from runwick.contracts.stores import JobRecord
from runwick.management.bodies import DispatchBody
from runwick.management.commands import is_number, note_of
from runwick.management.desk.application import Application
from runwick.management.desk.ground import Ground
from runwick.management.permissions import Caller, Forbidden, Permission
from runwick.management.service import CommandId

DELAY_MAX_MS = 36_500 * 24 * 60 * 60 * 1000
"""As for every dispatch."""


class DispatchDesk(Ground):
    """What an operator dispatches by hand."""

    async def dispatch(
        self,
        caller: Caller,
        name: str,
        payload: bytes,
        *,
        queue: str | None = None,
        priority: PriorityName | None = None,
        delay_ms: int | None = None,
        tenant: str | None = None,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> DispatchBody:
        """Create a job of a declared type; needs `Jobs.Dispatch` for its queue and tenant.

        Args:
            caller: who does this.
            name: the type's stored name.
            payload: JSON of its record, strict: a member given twice, or one that is unknown, is refused.
            queue, priority: instead of the type's own.
            delay_ms: when it is due, from now by the store's clock; None for at once.
            tenant: whom it belongs to; None is the default tenant.
            reason: why, for the audit trail.
            command_id: a UUID of the caller's, which becomes the dispatch's operation id; sent again with the same one
                and the same request, the first receipt is given again.

        Raises:
            Forbidden: the caller may not, or not there.
            InvalidArgument: something in it cannot be, or the application's code is not at hand (code
                ``application_required``); nothing was written.
            UniquenessConflict: a uniqueness key is held by another request.
            StoreError: nothing was written; ``operation_conflict`` where the command id was used for something else.
            ControlOutcomeUnknown: the job may or may not exist; the same command id settles it.
        """
        caller.allowed.need(Permission.JOBS_DISPATCH)
        side = self._application_side()
        operation_id = self._command_id(command_id)
        note = note_of(caller.actor, reason)
        if queue is not None:
            _check_reach(caller, queue, tenant)
        first = await self._ask(self._store.resolve(self.application, operation_id))
        options = DispatchOptions(
            queue=UNSET if queue is None else queue,
            priority=UNSET if priority is None else priority,
            not_before=_delay(delay_ms),
            tenant=tenant,
        )
        command = msgspec.structs.replace(
            side.prepare(name, payload, options).command,
            operation_id=operation_id,
            job_id=job_of_operation(operation_id),
        )
        _check_reach(caller, command.lane.queue, tenant)
        try:
            [answer] = await self._send(self._store.dispatch([command], note=note), operation_id)
        except UniquenessConflict as conflict:
            _refuse_conflict(caller, conflict)
        assert not isinstance(answer, ItemFailure), "conflicts are raised unless a batch goes on after them"
        return _body(answer, await self._shows(caller, answer), replayed=first is not None)

    def _application_side(self) -> Application:
        if self._side is None:
            message = "dispatching needs the application's code, which knows the job's record; only its store is open"
            raise InvalidArgument("application_required", message)
        return self._side

    async def _shows(self, caller: Caller, receipt: Receipt) -> bool:
        """Whether the caller may be told the job: his own always, one that a key found if he may see it."""
        if receipt.disposition is ReceiptDisposition.CREATED:
            return True
        return _is_seen(caller, await self._ask(self._store.job(self.application, receipt.job)))


def _check_reach(caller: Caller, queue: str, tenant: str | None) -> None:
    if not caller.allowed.covers(Permission.JOBS_DISPATCH, queue, tenant):
        raise Forbidden(Permission.JOBS_DISPATCH)


def _delay(delay_ms: int | None) -> datetime.timedelta | None:
    if delay_ms is None:
        return None
    if not is_number(delay_ms, 0, DELAY_MAX_MS):
        raise InvalidArgument("invalid_time", f"delay_ms is {delay_ms!r}; give whole milliseconds, up to 36,500 days")
    return datetime.timedelta(milliseconds=delay_ms)


def _is_seen(caller: Caller, record: JobRecord | None) -> bool:
    return record is not None and any(
        caller.allowed.covers(permission, record.lane.queue, record.tenant)
        for permission in (Permission.JOBS_READ, Permission.JOBS_DISPATCH)
    )


def _refuse_conflict(caller: Caller, conflict: UniquenessConflict) -> NoReturn:
    """A conflict names the job that holds the key, which somebody with a narrowed grant may not be allowed to see."""
    if caller.allowed.within(Permission.JOBS_READ) is None:
        raise conflict
    raise StoreError(conflict.code, "a uniqueness key of it is held by another job; nothing was written") from None


def _body(receipt: Receipt, shows_job: bool, *, replayed: bool) -> DispatchBody:
    return DispatchBody(
        job_id=receipt.job_id if shows_job else None,
        disposition=receipt.disposition.value,
        replayed=replayed,
        command_id=receipt.operation_id,
    )
