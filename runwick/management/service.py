"""`JobControls`: cancel, retry and rerun jobs, and look at running ones. It trusts its caller about who the actor is.

    target as last seen ─▶ checked ─▶ sent with a command id ─┬─▶ result: done, or refused with a code
                                                              └─▶ ControlOutcomeUnknown: the same id settles it

A refusal by the store (the job changed, is gone, or its state does not allow it) is a result, not an exception.
What waits for an answer of the store has a twin for event loops, under the same name with ``_async``.
"""

import uuid
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from runwick.contracts.activity import StackAnswer
from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.controls import (
    ControlAction,
    ControlAnswer,
    ControlCommand,
    ControlReply,
    JobTarget,
    ManagementActor,
)
from runwick.contracts.identity import id_bytes, id_text
from runwick.contracts.states import JobState
from runwick.contracts.stores import ControlStore, HistoryStore
from runwick.management.commands import command_of
from runwick.management.sending import sending
from runwick.runtime.asking import ask, ask_async

CommandId = str | uuid.UUID | bytes | None
"""Of the caller's own making, or None for a new one."""


class ControlResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one job that a control was about."""

    succeeded: bool
    code: str | None
    """Why not: ``not_found``, ``stale_generation``, ``stale_revision`` or ``invalid_state``; None for success."""
    job_id: str
    """UUID text, like the other ids."""
    state: JobState | None
    """Where the job stands now, like the next two; None for ``not_found``."""
    generation: int | None
    revision: int | None
    cancel_requested: bool
    """The job runs and was asked to stop: it is not cancelled yet, and may still succeed."""
    attempt_id: str | None
    """For a look: whose stack comes."""
    replayed: bool
    """The command had been applied before; this is the answer of then."""
    command_id: str

    @classmethod
    def of(cls, answer: ControlAnswer, command_id: bytes, *, replayed: bool) -> "ControlResult":
        """The result that a store's answer means."""
        return cls(
            succeeded=answer.code is None,
            code=answer.code,
            job_id=id_text(answer.job_id),
            state=answer.state,
            generation=answer.generation,
            revision=answer.revision,
            cancel_requested=answer.cancel_requested,
            attempt_id=None if answer.attempt_id is None else id_text(answer.attempt_id),
            replayed=replayed,
            command_id=id_text(command_id),
        )


class ManagedStore(ControlStore, HistoryStore, Protocol):
    """What the service needs of a store."""


class JobControls:
    """What an operator does to the jobs of one application.

    Args:
        application: whose jobs.
        store: gives the store, opened.
        ids: makes ids of commands.
        clock: limits how long a command is tried.
    """

    def __init__(self, application: str, store: Callable[[], ManagedStore], ids: Ids, clock: Clock) -> None:
        self._application = application
        self._store = store
        self._ids = ids
        self._clock = clock

    def cancel(
        self, target: JobTarget, actor: ManagementActor, *, reason: str | None = None, command_id: CommandId = None
    ) -> ControlResult:
        """Cancel a job. A waiting one ends at once and never runs; a running one is asked to stop, which its worker
        hears within a second, and may still succeed before it does.

        Args:
            target: the job as last seen, such as ``rw.get(…).target``; if it has changed since, nothing is done.
            actor: who does this, for the audit trail.
            reason: why, up to 1,000 characters, for the audit trail.
            command_id: a UUID of the caller's; sent again with the same one, the first answer is given again.

        Raises:
            InvalidArgument: one of these cannot be; nothing was sent.
            StoreError: the store refuses or does not answer; nothing was written.
            ControlOutcomeUnknown: it may or may not have been applied; its `command_id` settles it.
        """
        return self._run(ControlAction.CANCEL, [target], actor, reason, command_id)[0]

    async def cancel_async(
        self, target: JobTarget, actor: ManagementActor, *, reason: str | None = None, command_id: CommandId = None
    ) -> ControlResult:
        """`cancel` on an event loop."""
        return (await self._run_async(ControlAction.CANCEL, [target], actor, reason, command_id))[0]

    def cancel_many(
        self,
        targets: Sequence[JobTarget],
        actor: ManagementActor,
        *,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> list[ControlResult]:
        """Cancel up to 100 different jobs in one transaction, each as `cancel` does; results in the order given."""
        return self._run(ControlAction.CANCEL, targets, actor, reason, command_id)

    async def cancel_many_async(
        self,
        targets: Sequence[JobTarget],
        actor: ManagementActor,
        *,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> list[ControlResult]:
        """`cancel_many` on an event loop."""
        return await self._run_async(ControlAction.CANCEL, targets, actor, reason, command_id)

    def retry(
        self, target: JobTarget, actor: ManagementActor, *, reason: str | None = None, command_id: CommandId = None
    ) -> ControlResult:
        """Give a failed or cancelled job a new generation, with fresh budgets, due now; otherwise as `cancel`."""
        return self._run(ControlAction.RETRY, [target], actor, reason, command_id)[0]

    async def retry_async(
        self, target: JobTarget, actor: ManagementActor, *, reason: str | None = None, command_id: CommandId = None
    ) -> ControlResult:
        """`retry` on an event loop."""
        return (await self._run_async(ControlAction.RETRY, [target], actor, reason, command_id))[0]

    def rerun(
        self, target: JobTarget, actor: ManagementActor, *, reason: str | None = None, command_id: CommandId = None
    ) -> ControlResult:
        """Run a job that has succeeded once more: a new generation, as `retry` makes one."""
        return self._run(ControlAction.RERUN, [target], actor, reason, command_id)[0]

    async def rerun_async(
        self, target: JobTarget, actor: ManagementActor, *, reason: str | None = None, command_id: CommandId = None
    ) -> ControlResult:
        """`rerun` on an event loop."""
        return (await self._run_async(ControlAction.RERUN, [target], actor, reason, command_id))[0]

    def look(
        self, target: JobTarget, actor: ManagementActor, *, reason: str | None = None, command_id: CommandId = None
    ) -> ControlResult:
        """Ask for the Python stack of a running job; `stack` has it soon after, under the result's `attempt_id`."""
        return self._run(ControlAction.LOOK, [target], actor, reason, command_id)[0]

    async def look_async(
        self, target: JobTarget, actor: ManagementActor, *, reason: str | None = None, command_id: CommandId = None
    ) -> ControlResult:
        """`look` on an event loop."""
        return (await self._run_async(ControlAction.LOOK, [target], actor, reason, command_id))[0]

    def stack(self, attempt_id: str) -> str | None:
        """The stack that `look` asked for; None as long as its worker has not answered.

        Raises:
            InvalidArgument: that is no id (code ``invalid_id``).
            StoreError: the store refuses, or does not answer.
        """
        store, attempt = self._store(), id_bytes(attempt_id)
        return _text(store.run(store.stack(self._application, attempt)))

    async def stack_async(self, attempt_id: str) -> str | None:
        """`stack` on an event loop."""
        store, attempt = self._store(), id_bytes(attempt_id)
        return _text(await store.run_async(store.stack(self._application, attempt)))

    def _run(
        self,
        action: ControlAction,
        targets: Sequence[JobTarget],
        actor: ManagementActor,
        reason: str | None,
        command_id: CommandId,
    ) -> list[ControlResult]:
        command = self._command(action, targets, actor, reason, command_id)
        store = self._store()
        reply = ask(store, sending(store.control(command), command.command_id, self._clock))
        return _results(reply, command.command_id)

    async def _run_async(
        self,
        action: ControlAction,
        targets: Sequence[JobTarget],
        actor: ManagementActor,
        reason: str | None,
        command_id: CommandId,
    ) -> list[ControlResult]:
        command = self._command(action, targets, actor, reason, command_id)
        store = self._store()
        reply = await ask_async(store, sending(store.control(command), command.command_id, self._clock))
        return _results(reply, command.command_id)

    def _command(
        self,
        action: ControlAction,
        targets: Sequence[JobTarget],
        actor: ManagementActor,
        reason: str | None,
        command_id: CommandId,
    ) -> ControlCommand:
        # Only None asks for a new id: an empty one is a mistake, and would not be known when it is sent again.
        given = self._ids.ordered() if command_id is None else command_id
        return command_of(action, self._application, targets, actor, reason, given)


def _results(reply: ControlReply, command_id: bytes) -> list[ControlResult]:
    return [ControlResult.of(answer, command_id, replayed=reply.replayed) for answer in reply.answers]


def _text(answer: StackAnswer | None) -> str | None:
    return None if answer is None else answer.text
