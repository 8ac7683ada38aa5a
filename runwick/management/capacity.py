"""`CapacityControls`: the limits across all workers as they stand in the store, and changing the capacity of scopes.
It trusts its caller about who the actor is.

What waits for an answer of the store has a twin for event loops, under the same name with ``_async``.
"""

import datetime
from typing import Final

import msgspec

from runwick.contracts.controls import ManagementActor, SteerAction, SteerCommand
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.limits import LimitKind, RateRecord, ScopeRecord
from runwick.management.commands import is_number, limit_kind
from runwick.management.service import CommandId
from runwick.management.steering import Steering, SteerResult
from runwick.runtime.asking import ask, ask_async

PAGE_MAX: Final = 1_000
"""Limits of one page."""


class ScopeView(msgspec.Struct, frozen=True, kw_only=True):
    """One scope as it stood when it was read."""

    id: str
    """Reading after it goes on behind this scope."""
    kind: LimitKind
    key: str
    capacity: int
    in_use: int
    """More than `capacity` for a while after that was lowered."""
    waiting: bool
    """Whether jobs wait for it."""
    revision: int
    """What `CapacityControls.set` expects."""
    fence: int
    """The last fencing token given; 0 where none was."""

    @classmethod
    def of(cls, record: ScopeRecord) -> "ScopeView":
        """The view of a stored scope."""
        return cls(
            id=record.id.hex(),
            kind=record.kind,
            key=record.key,
            capacity=record.capacity,
            in_use=record.in_use,
            waiting=record.waiting,
            revision=record.revision,
            fence=record.fence,
        )


class RateView(msgspec.Struct, frozen=True, kw_only=True):
    """One rate window as it stood when it was read."""

    id: str
    """Reading after it goes on behind this window."""
    kind: LimitKind
    key: str
    max_executions: int
    window: datetime.timedelta
    granted: int
    """Runs authorised so far, all its life."""
    in_window: int
    """Of them, those within the window that ended when this was read."""
    waiting: bool
    """Whether jobs wait for it."""

    @classmethod
    def of(cls, record: RateRecord) -> "RateView":
        """The view of a stored window."""
        return cls(
            id=record.id.hex(),
            kind=record.kind,
            key=record.key,
            max_executions=record.max_executions,
            window=datetime.timedelta(milliseconds=record.window_ms),
            granted=record.granted,
            in_window=record.in_window,
            waiting=record.waiting,
        )


class CapacityControls:
    """What an operator sees of, and does to, the limits of one application.

    Args:
        steering: sends the commands.
    """

    def __init__(self, steering: Steering) -> None:
        self._steering = steering

    def scopes(self, kind: LimitKind | str, *, after: str | None = None, limit: int = 100) -> list[ScopeView]:
        """The scopes of one kind, in the order of their ids. A page of fewer than `limit` is the last one.

        Args:
            kind: ``queue``, ``job-type`` or ``resource``.
            after: the `id` of the last one of the page before; None reads from the beginning.
            limit: at most so many, 1 to 1,000.

        Raises:
            InvalidArgument: one of these cannot be (code ``invalid_argument``).
            StoreError: the store refuses, or does not answer.
        """
        page = limit_kind(kind), _id(after), _limit(limit)
        store = self._steering.store()
        return [ScopeView.of(record) for record in store.run(store.scopes(self._steering.application, *page))]

    async def scopes_async(
        self, kind: LimitKind | str, *, after: str | None = None, limit: int = 100
    ) -> list[ScopeView]:
        """`scopes` on an event loop."""
        page = limit_kind(kind), _id(after), _limit(limit)
        store = self._steering.store()
        records = await store.run_async(store.scopes(self._steering.application, *page))
        return [ScopeView.of(record) for record in records]

    def rates(self, kind: LimitKind | str, *, after: str | None = None, limit: int = 100) -> list[RateView]:
        """The rate windows of one kind, ``job-type`` or ``resource``, read as `scopes` reads."""
        page = limit_kind(kind), _id(after), _limit(limit)
        store = self._steering.store()
        return [RateView.of(record) for record in store.run(store.rates(self._steering.application, *page))]

    async def rates_async(self, kind: LimitKind | str, *, after: str | None = None, limit: int = 100) -> list[RateView]:
        """`rates` on an event loop."""
        page = limit_kind(kind), _id(after), _limit(limit)
        store = self._steering.store()
        records = await store.run_async(store.rates(self._steering.application, *page))
        return [RateView.of(record) for record in records]

    def set(
        self,
        kind: LimitKind | str,
        key: str,
        capacity: int,
        actor: ManagementActor,
        *,
        expected_revision: int,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> SteerResult:
        """Change how many jobs may hold a scope at once. It holds from the next claim on; lowering it revokes nothing.
        What the application declares does not change it back.

        Args:
            kind: ``queue``, ``job-type`` or ``resource``.
            key: the queue, the job's name, or the resource's key.
            capacity: from 1.
            actor: who does this, for the audit trail.
            expected_revision: the scope's as last read; if it has changed since, nothing is done.
            reason: why, up to 1,000 characters, for the audit trail.
            command_id: a UUID of the caller's; sent again with the same one, the first answer is given again.

        Raises:
            InvalidArgument: one of these cannot be (code ``invalid_argument`` or ``invalid_id``); nothing was sent.
            StoreError: the store refuses or does not answer; nothing was written.
            ControlOutcomeUnknown: it may or may not have been applied; its `command_id` settles it.
        """
        command = self._command(kind, key, capacity, actor, expected_revision, reason, command_id)
        return ask(self._steering.store(), self._steering.sending(command))

    async def set_async(
        self,
        kind: LimitKind | str,
        key: str,
        capacity: int,
        actor: ManagementActor,
        *,
        expected_revision: int,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> SteerResult:
        """`set` on an event loop."""
        command = self._command(kind, key, capacity, actor, expected_revision, reason, command_id)
        return await ask_async(self._steering.store(), self._steering.sending(command))

    def _command(
        self,
        kind: LimitKind | str,
        key: str,
        capacity: int,
        actor: ManagementActor,
        expected_revision: int,
        reason: str | None,
        command_id: CommandId,
    ) -> SteerCommand:
        return self._steering.command(
            SteerAction.SET_CAPACITY, limit_kind(kind), key, actor, reason, command_id, expected_revision, capacity
        )


def _id(after: str | None) -> bytes | None:
    try:
        raw = None if after is None else bytes.fromhex(after)
    except (TypeError, ValueError):
        raw = b""
    if raw is not None and len(raw) != 16:
        raise InvalidArgument("invalid_argument", f"after is {after!r}; give the id of a limit as it was read, or None")
    return raw


def _limit(limit: int) -> int:
    if not is_number(limit, 1, PAGE_MAX):
        raise InvalidArgument("invalid_argument", f"limit is {limit!r}; give a whole number from 1 to {PAGE_MAX:,}")
    return limit
