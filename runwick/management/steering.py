"""How a queue or a capacity is changed: one checked command on its way, and what became of it.

A refusal by the store (it is not there, somebody changed it, it is so already) is a result, not an exception.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.controls import ManagementActor, SteerAction, SteerCommand, SteerReply
from runwick.contracts.identity import id_text
from runwick.contracts.limits import LimitKind
from runwick.contracts.stores import ClaimStore, ControlStore, LimitStore
from runwick.management.commands import steer_command_of
from runwick.management.sending import sending
from runwick.management.service import CommandId
from runwick.runtime.asking import Request


class SteerResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one queue or scope that was to be changed."""

    succeeded: bool
    code: str | None
    """Why not: ``not_found``, ``stale_revision``, or ``invalid_state`` where it is so already; None for success."""
    revision: int | None
    """As it is now; None for ``not_found``."""
    before: str | None
    """``open``, ``paused``, or the capacity; like `after` None where nothing is known of it."""
    after: str | None
    replayed: bool
    """The command had been applied before; this is the answer of then."""
    command_id: str

    @classmethod
    def of(cls, reply: SteerReply, command_id: bytes) -> "SteerResult":
        """The result that a store's answer means."""
        return cls(
            succeeded=reply.code is None,
            code=reply.code,
            revision=reply.revision,
            before=reply.before,
            after=reply.after,
            replayed=reply.replayed,
            command_id=id_text(command_id),
        )


class SteeredStore(ClaimStore, ControlStore, LimitStore, Protocol):
    """What the services need of a store."""


class Steering:
    """Sends commands of one application.

    Args:
        application: whose queues and limits.
        store: gives the store, opened.
        ids: makes ids of commands.
        clock: limits how long a command is tried.
    """

    def __init__(self, application: str, store: Callable[[], SteeredStore], ids: Ids, clock: Clock) -> None:
        self.application = application
        self.store = store
        self._ids = ids
        self._clock = clock

    def command(
        self,
        action: SteerAction,
        kind: LimitKind,
        key: str,
        actor: ManagementActor,
        reason: str | None,
        command_id: CommandId,
        expected_revision: int,
        capacity: int | None = None,
    ) -> SteerCommand:
        """The command, checked.

        Raises:
            InvalidArgument: something in it cannot be.
        """
        # Only None asks for a new id: an empty one is a mistake, and would not be known when it is sent again.
        given = self._ids.ordered() if command_id is None else command_id
        return steer_command_of(action, self.application, kind, key, actor, reason, given, expected_revision, capacity)

    def sending(self, command: SteerCommand) -> Request[SteerResult]:
        """Send it until it is answered.

        Raises:
            StoreError: the store refuses or does not answer; nothing was written.
            ControlOutcomeUnknown: it may or may not have been applied.
        """
        reply = yield from sending(self.store().steer(command), command.command_id, self._clock)
        return SteerResult.of(reply, command.command_id)
