"""`QueueControls`: which queues there are, and pausing and resuming them. It trusts its caller about who the actor is.

Pausing stops workers from claiming, and nothing else: what runs goes on, and dispatches are taken. What waits for an
answer of the store has a twin for event loops, under the same name with ``_async``.
"""

import datetime
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from runwick.contracts.attempts import Lane
from runwick.contracts.controls import ManagementActor, SteerAction, SteerCommand
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.limits import LimitKind, QueueRecord
from runwick.contracts.states import Priority
from runwick.management.service import CommandId
from runwick.management.steering import Steering, SteerResult
from runwick.runtime.asking import Request, ask, ask_async

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """One queue that the store knows, as it stood when it was read."""

    queue: str
    paused: bool
    revision: int
    """What a pause or a resume expects; 0 for a queue that nobody ever paused."""
    since: datetime.datetime | None
    """Since when it is paused, aware, UTC, by the store's clock."""

    @classmethod
    def of(cls, record: QueueRecord) -> "QueueView":
        """The view of a stored queue."""
        since = None if record.since_ms is None else _EPOCH + datetime.timedelta(milliseconds=record.since_ms)
        return cls(queue=record.queue, paused=record.paused, revision=record.revision, since=since)


class QueueControls:
    """What an operator does to the queues of one application.

    Args:
        steering: sends the commands.
        declared: gives the queues that the application declares.
    """

    def __init__(self, steering: Steering, declared: Callable[[], Collection[str]]) -> None:
        self._steering = steering
        self._declared = declared

    def list(self) -> tuple[QueueView, ...]:
        """Every queue that a worker has registered or something was dispatched to, by name.

        Raises:
            StoreError: the store refuses, or does not answer.
        """
        store = self._steering.store()
        return _views(store.run(store.queues(self._steering.application)))

    async def list_async(self) -> tuple[QueueView, ...]:
        """`list` on an event loop."""
        store = self._steering.store()
        return _views(await store.run_async(store.queues(self._steering.application)))

    def pause(
        self,
        queue: str,
        actor: ManagementActor,
        *,
        expected_revision: int,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> SteerResult:
        """Claim nothing more from a queue until it is resumed. Jobs that run end as ever; dispatches are taken.

        Args:
            queue: its name.
            actor: who does this, for the audit trail.
            expected_revision: the queue's as last read; if it has changed since, nothing is done.
            reason: why, up to 1,000 characters, for the audit trail.
            command_id: a UUID of the caller's; sent again with the same one, the first answer is given again.

        Raises:
            InvalidArgument: one of these cannot be (code ``invalid_argument`` or ``invalid_id``), or neither the
                application nor its store has such a queue (code ``unknown_queue``); nothing was written.
            StoreError: the store refuses or does not answer; nothing was written.
            ControlOutcomeUnknown: it may or may not have been applied; its `command_id` settles it.
        """
        command = self._command(SteerAction.PAUSE, queue, actor, expected_revision, reason, command_id)
        return ask(self._steering.store(), self._steer(command))

    async def pause_async(
        self,
        queue: str,
        actor: ManagementActor,
        *,
        expected_revision: int,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> SteerResult:
        """`pause` on an event loop."""
        command = self._command(SteerAction.PAUSE, queue, actor, expected_revision, reason, command_id)
        return await ask_async(self._steering.store(), self._steer(command))

    def resume(
        self,
        queue: str,
        actor: ManagementActor,
        *,
        expected_revision: int,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> SteerResult:
        """Claim from a queue again, as `pause` stopped it; workers that wait are woken."""
        command = self._command(SteerAction.RESUME, queue, actor, expected_revision, reason, command_id)
        return ask(self._steering.store(), self._steer(command))

    async def resume_async(
        self,
        queue: str,
        actor: ManagementActor,
        *,
        expected_revision: int,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> SteerResult:
        """`resume` on an event loop."""
        command = self._command(SteerAction.RESUME, queue, actor, expected_revision, reason, command_id)
        return await ask_async(self._steering.store(), self._steer(command))

    def _command(
        self,
        action: SteerAction,
        queue: str,
        actor: ManagementActor,
        expected_revision: int,
        reason: str | None,
        command_id: CommandId,
    ) -> SteerCommand:
        return self._steering.command(
            action, LimitKind.QUEUE, queue, actor, reason, command_id, expected_revision=expected_revision
        )

    def _steer(self, command: SteerCommand) -> Request[SteerResult]:
        """Send it. A queue that the store has not heard of yet is made known first, if the application declares it; one
        that nobody declares is a mistake."""
        result = yield from self._steering.sending(command)
        if result.code != "not_found":
            return result
        if command.key not in (declared := self._declared()):
            listed = ", ".join(sorted(declared)) or "none"
            message = f"neither the application nor its store has a queue {command.key!r}; declared are: {listed}"
            raise InvalidArgument("unknown_queue", message)
        lane = Lane(command.key, Priority.MEDIUM)
        yield self._steering.store().register(self._steering.application, [lane], frozenset())
        return (yield from self._steering.sending(command))


def _views(records: list[QueueRecord]) -> tuple[QueueView, ...]:
    return tuple(map(QueueView.of, records))
