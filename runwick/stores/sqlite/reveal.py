"""Reveal: what is private is shown to somebody, and the audit trail says so in the same transaction.

What was shown is never kept with the command: sent again it reads again, and writes no second row.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.outcomes import BlackBox, ErrorDetail
from runwick.contracts.revealing import RevealCommand, Revealed, Secret
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores.controls import command_conflict
from runwick.stores.damage import maybe_read
from runwick.stores.revealing import audit_action, audit_target, fingerprint
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.trail import audit_row
from runwick.stores.steps import Step, Steps

T = TypeVar("T")

_NOT_KEPT: Final = b"null"
"""In place of a reply."""


class _Found(NamedTuple):
    """The job as it stands, and what its attempt left behind, where one was named and is closed."""

    job: int
    state: str
    generation: int
    attempt: Sequence[Any] | None
    """generation, error, black_box"""


def reveal(gate: Gate, interned: Interned, command: RevealCommand, clock: Clock) -> Act[Revealed | None]:
    """Show it; None when there is no such job.

    Raises (when run):
        StoreError: the command id was used for something else (code ``operation_conflict``).
    """
    return Act("reveal", lambda: _reveal(gate, interned, command, clock))


def _reveal(gate: Gate, interned: Interned, command: RevealCommand, clock: Clock) -> Steps[Revealed | None]:
    yield from interned.refresh()
    application = interned.applications.ids.get(command.application)
    if application is None:
        return None
    known = yield Step("command_known", (application, command.command_id))
    for kept_fingerprint, _ in known:
        if kept_fingerprint != fingerprint(command):
            raise command_conflict(command)
    if not known:
        gate.admit("reveal", application)
    found = yield from _find(application, command)
    if found is None:
        return None
    if not known:
        yield from _record(application, command, found, clock.now_ms())
    shown = yield from _read(command, found)
    return msgspec.structs.replace(shown, replayed=bool(known))


def _find(application: int, command: RevealCommand) -> Steps[_Found | None]:
    for job, state, generation in (yield Step("reveal_job", (application, command.job_id))):
        left = [] if command.attempt_id is None else (yield Step("reveal_attempt", (job, command.attempt_id)))
        return _Found(job, state, generation, next(iter(left), None))
    return None


def _record(application: int, command: RevealCommand, found: _Found, now_ms: int) -> Steps[None]:
    ((position,),) = yield Step("next_position")
    row = audit_row(
        position,
        application,
        command.actor,
        audit_action(command),
        now_ms,
        command_id=command.command_id,
        reason=command.reason,
        job=found.job,
        generation=found.generation if found.attempt is None else found.attempt[0],
        target=audit_target(command),
    )
    yield Step("audit_add", row)
    yield Step("command_keep", (application, command.command_id, fingerprint(command), _NOT_KEPT, now_ms))


def _read(command: RevealCommand, found: _Found) -> Steps[Revealed]:
    _, error, black_box = found.attempt or (None, None, None)
    match command.what:
        case Secret.PAYLOAD:
            ((payload,),) = yield Step("reveal_payload", (found.job,))
            return Revealed(json=payload)
        case Secret.RESULT:
            if found.state != JobState.SUCCEEDED:
                return Revealed()
            return Revealed(json=_only((yield Step("job_result", (found.job, found.generation)))))
        case Secret.ERROR:
            return Revealed(error=maybe_read(error, ErrorDetail))
        case Secret.BLACK_BOX:
            return Revealed(black_box=maybe_read(black_box, BlackBox))
        case Secret.STACK:
            if command.attempt_id is None:
                return Revealed()
            return Revealed(text=_only((yield Step("reveal_stack", (found.job, command.attempt_id)))))


def _only(rows: Sequence[tuple[T]]) -> T | None:
    """What one row says, if there is one."""
    return rows[0][0] if rows else None
