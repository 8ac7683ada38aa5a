"""The desk's part for what work waits for: queues, scopes and rate windows."""

from typing import Final

from runwick.contracts.controls import SteerAction, SteerCommand, SteerReply
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.limits import LimitKind, RateRecord, ScopeRecord
from runwick.contracts.listing import Backlog
from runwick.management.bodies import (
    QueueBody,
    QueueListBody,
    RateListBody,
    ScopeListBody,
    SteerBody,
)
from runwick.management.commands import limit_kind, steer_command_of
from runwick.management.desk.ground import Ground, check_limit
from runwick.management.desk.shown import maybe_time, time_text
from runwick.management.desk.shown_flow import rate_body, scope_body, steer_body
from runwick.management.permissions import Caller, Permission
from runwick.management.service import CommandId

_ID_BYTES: Final = 16


class LimitDesk(Ground):
    """What an operator sees of queues and limits, and does to them."""

    async def queues(self, caller: Caller) -> QueueListBody:
        """Every queue that is declared, or that the store knows, by name, with how far behind it is; needs
        `Queues.Read`.

        Raises:
            Forbidden: the caller may not.
        """
        caller.allowed.need(Permission.QUEUES_READ)
        as_of_ms = self._store.now_ms()
        known = {record.queue: record for record in await self._ask(self._store.queues(self.application))}
        backlogs = {each.queue: each for each in await self._ask(self._store.backlogs(self.application))}
        declared = frozenset() if self._side is None else frozenset(self._side.declared_queues())
        shown = []
        for queue in sorted({*known, *backlogs, *declared}):
            if not caller.allowed.covers_queue(Permission.QUEUES_READ, queue):
                continue
            record, backlog = known.get(queue), backlogs.get(queue, _nothing(queue))
            shown.append(
                QueueBody(
                    queue=queue,
                    declared=queue in declared,
                    paused=record is not None and record.paused,
                    paused_since=maybe_time(None if record is None else record.since_ms),
                    revision=0 if record is None else record.revision,
                    due=backlog.due,
                    later=backlog.later,
                    blocked=backlog.blocked,
                    leased=backlog.leased,
                    oldest_due_at=maybe_time(backlog.oldest_due_at_ms),
                )
            )
        return QueueListBody(queues=tuple(shown), as_of=time_text(as_of_ms))

    async def pause(
        self,
        caller: Caller,
        queue: str,
        expected_revision: int,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> SteerBody:
        """Claim nothing more from a queue until it is resumed; needs `Queues.Control` for it.

        Args:
            caller: who does this.
            queue: its name. One that is hidden, or that no store knows, answers ``not_found``.
            expected_revision: the queue's as last read; if it has changed since, nothing is done.
            reason: why, for the audit trail.
            command_id: a UUID of the caller's; sent again with the same one, the first answer is given again.

        Raises:
            Forbidden: the caller may not do this to any queue.
            InvalidArgument: something in it cannot be; nothing was sent.
            StoreError: nothing was written.
            ControlOutcomeUnknown: it may or may not have been applied; the same command id settles it.
        """
        return await self._steer_queue(caller, SteerAction.PAUSE, queue, expected_revision, reason, command_id)

    async def resume(
        self,
        caller: Caller,
        queue: str,
        expected_revision: int,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> SteerBody:
        """Claim from a queue again; as `pause`."""
        return await self._steer_queue(caller, SteerAction.RESUME, queue, expected_revision, reason, command_id)

    async def scopes(
        self, caller: Caller, kind: LimitKind | str | None = None, cursor: str | None = None, limit: int = 100
    ) -> ScopeListBody:
        """The scopes of one kind, or of all kinds one after the other; needs `Capacity.Read`.

        Raises:
            Forbidden: the caller may not.
            InvalidArgument: there is no such kind, cursor or limit (code ``invalid_argument``).
        """
        caller.allowed.need(Permission.CAPACITY_READ)
        as_of_ms = self._store.now_ms()
        found: list[ScopeRecord] = []
        for each, after in _places(kind, cursor):
            left = check_limit(limit) - len(found)
            page = await self._ask(self._store.scopes(self.application, each, after, left))
            found += page
            if len(found) == limit:
                break
        place = _cursor(found[-1]) if len(found) == limit else None
        return ScopeListBody(scopes=tuple(map(scope_body, found)), cursor=place, as_of=time_text(as_of_ms))

    async def rates(
        self, caller: Caller, kind: LimitKind | str | None = None, cursor: str | None = None, limit: int = 100
    ) -> RateListBody:
        """The rate windows, read as `scopes` reads."""
        caller.allowed.need(Permission.CAPACITY_READ)
        as_of_ms = self._store.now_ms()
        found: list[RateRecord] = []
        for each, after in _places(kind, cursor):
            left = check_limit(limit) - len(found)
            page = await self._ask(self._store.rates(self.application, each, after, left))
            found += page
            if len(found) == limit:
                break
        place = _cursor(found[-1]) if len(found) == limit else None
        return RateListBody(rates=tuple(map(rate_body, found)), cursor=place, as_of=time_text(as_of_ms))

    async def set_capacity(
        self,
        caller: Caller,
        kind: LimitKind | str,
        key: str,
        capacity: int,
        expected_revision: int,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> SteerBody:
        """Change how many jobs may hold a scope at once; needs `Capacity.Edit`. Lowering it revokes nothing.

        Args:
            caller: who does this.
            kind: ``queue``, ``job-type`` or ``resource``.
            key: the queue, the job's name, or the resource's key.
            capacity: from 1.
            expected_revision: the scope's as last read; if it has changed since, nothing is done.
            reason: why, for the audit trail.
            command_id: as for `pause`.

        Raises:
            As `pause`.
        """
        caller.allowed.need(Permission.CAPACITY_EDIT)
        command = steer_command_of(
            SteerAction.SET_CAPACITY,
            self.application,
            limit_kind(kind),
            key,
            caller.actor,
            reason,
            self._command_id(command_id),
            expected_revision,
            capacity,
        )
        return await self._steer(command)

    async def _steer_queue(
        self,
        caller: Caller,
        action: SteerAction,
        queue: str,
        expected_revision: int,
        reason: str | None,
        command_id: CommandId,
    ) -> SteerBody:
        caller.allowed.need(Permission.QUEUES_CONTROL)
        given = self._command_id(command_id)
        command = steer_command_of(
            action, self.application, LimitKind.QUEUE, queue, caller.actor, reason, given, expected_revision
        )
        # A queue's name alone decides whether it is within reach, so that whether it exists cannot show.
        if not caller.allowed.covers_queue(Permission.QUEUES_CONTROL, queue):
            return steer_body(SteerReply(code="not_found"), given)
        return await self._steer(command)

    async def _steer(self, command: SteerCommand) -> SteerBody:
        reply = await self._send(self._store.steer(command), command.command_id)
        return steer_body(reply, command.command_id)


def _nothing(queue: str) -> Backlog:
    return Backlog(queue=queue, due=0, later=0, blocked=0, leased=0, oldest_due_at_ms=None)


def _places(kind: LimitKind | str | None, cursor: str | None) -> list[tuple[LimitKind, bytes | None]]:
    """Where to read on: the kinds from the cursor's on, each with the id to begin behind."""
    kinds = [*LimitKind] if kind is None else [limit_kind(kind)]
    if cursor is None:
        return [(each, None) for each in kinds]
    name, _, place = cursor.partition(".")
    try:
        after = bytes.fromhex(place)
        first = kinds.index(LimitKind(name))
    except ValueError:
        after, first = b"", 0
    if len(after) != _ID_BYTES:
        raise InvalidArgument("invalid_argument", "that is no cursor of these limits; begin without one")
    return [(kinds[first], after), *((each, None) for each in kinds[first + 1 :])]


def _cursor(last: ScopeRecord | RateRecord) -> str:
    return f"{last.kind.value}.{last.id.hex()}"
