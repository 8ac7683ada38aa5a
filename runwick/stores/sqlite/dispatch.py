"""Dispatch: jobs become durable, all of a batch or none.

An operation's id gives its job's id, so the job's row is the receipt: sending a command again finds the row and answers
what it answered first, whatever its deadline and its application's mode have become. Plain jobs, which have neither
keys nor limits of their own, are written by two statements; others, and what somebody dispatches by hand, go through
`runwick.stores.sqlite.keyed`.
"""

from collections.abc import Sequence

from runwick.contracts.ambient import Clock
from runwick.contracts.dispatching import Command, DuplicateMatch, Receipt
from runwick.contracts.errors import ItemFailure
from runwick.contracts.identity import job_of_operation
from runwick.contracts.revealing import AuditNote
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.sqlite import receipts
from runwick.stores.sqlite.entering import enter
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.interned import Interned, Naming
from runwick.stores.sqlite.keyed import dispatch_keyed, is_plain
from runwick.stores.steps import Step, Steps


def dispatch(
    gate: Gate,
    interned: Interned,
    commands: Sequence[Command],
    clock: Clock,
    *,
    continue_on_conflict: bool,
    note: AuditNote | None,
) -> Act[list[Receipt | ItemFailure]]:
    """Create these jobs, all or none, or find the ones that uniqueness keys name; answers in input order."""
    return Act("dispatch", lambda: _dispatch(gate, interned, commands, clock, continue_on_conflict, note))


def _dispatch(
    gate: Gate,
    interned: Interned,
    commands: Sequence[Command],
    clock: Clock,
    continue_on_conflict: bool,
    note: AuditNote | None,
) -> Steps[list[Receipt | ItemFailure]]:
    ((first,),) = yield Step("next_position")
    now_ms = clock.now_ms()
    if note is not None or not all(is_plain(interned, command) for command in commands):
        return (
            yield from dispatch_keyed(
                gate, interned, commands, first, now_ms, continue_on_conflict=continue_on_conflict, note=note
            )
        )
    yield from _check(gate, commands, now_ms)
    if (yield from enter(Naming(interned), commands, first, now_ms)) < len(commands):
        for command in commands:
            yield from _was_applied(command)
    return [receipts.created(command.job_id, command.operation_id) for command in commands]


def _check(gate: Gate, commands: Sequence[Command], now_ms: int) -> Steps[None]:
    """Refuse what may not be applied now. Only what is refused is looked up: it may have been applied before."""
    for command in commands:
        gate.check_meant(command)
        refusal = gate.refusal("dispatch", command.application) or refusals.too_late(command, now_ms)
        if refusal is not None and not (yield from _was_applied(command)):
            raise refusal


def _was_applied(command: Command) -> Steps[bool]:
    """Whether the command's job is there.

    Raises:
        StoreError: it is another operation's (code ``operation_conflict``).
    """
    rows = yield Step("dispatched", (command.job_id,))
    for (operation_id,) in rows:
        if operation_id != command.operation_id:
            raise refusals.operation_conflict(command, operation_id)
    return bool(rows)


def resolve(application: str, operation_id: bytes) -> Act[Receipt | None]:
    """The receipt of an operation that was applied; None when it was not, so far."""
    return Act("resolve", lambda: _resolve(application, operation_id), reads_only=True)


def _resolve(application: str, operation_id: bytes) -> Steps[Receipt | None]:
    job_id = job_of_operation(operation_id)
    if (yield Step("resolved", (application, job_id, operation_id))):
        return receipts.created(job_id, operation_id)
    for found, match, drift in (yield Step("reused", (application, operation_id))):
        return receipts.reused(operation_id, found, DuplicateMatch(match), bool(drift))
    return None
