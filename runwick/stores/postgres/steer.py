"""Steer: an operator pauses or resumes a queue, or changes a capacity, if it still stands as the operator saw it.

It is one statement, which keeps its reply for a command that is sent again. It judges as
`runwick.stores.steering` does; what was judged is proven by the row's revision when the row is locked.
"""

from typing import Any, Final

import msgspec

from runwick.contracts.controls import SteerAction, SteerCommand, SteerReply
from runwick.contracts.stores import Act
from runwick.policy.limit_ids import scope_id
from runwick.stores.controls import command_conflict
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.calling import CALLS_MAX, call_in
from runwick.stores.postgres.names import Wanted
from runwick.stores.postgres.tend import LIMITS_AT_ONCE, call_in_everywhere
from runwick.stores.steering import audit_target, fingerprint
from runwick.stores.steps import Step, Steps

_REPLY: Final = msgspec.json.Decoder(tuple[str | None, int | None, str | None, str | None])


def steer(bound: Bound, command: SteerCommand) -> Act[SteerReply]:
    """Do this to the queue or the scope.

    Raises (when run):
        StoreError: the command id was used for something else (code ``operation_conflict``).
    """
    return MakesDue(command.action.value, lambda due: _steer(bound, command, due))


def _steer(bound: Bound, command: SteerCommand, due: Due) -> Steps[SteerReply]:
    application = yield from bound.names.find(Wanted(command.application))
    if application is None:
        return SteerReply("not_found")
    (known_fingerprint, reply, *_), *rest = yield _step(bound, application, command)
    if known_fingerprint not in (None, fingerprint(command)):
        raise command_conflict(command)
    answer = SteerReply(*_REPLY.decode(reply), replayed=known_fingerprint is not None)
    if command.action is SteerAction.RESUME and answer.code is None and not answer.replayed:
        due.add(application)
    call_in(bound, (tuple(row[2:]) for row in rest if row[1] is None), due, application)
    for *_, last in (row for row in rest if row[1] is not None):
        yield from call_in_everywhere(bound, application, last, due)
    return answer


def _step(bound: Bound, application: int, command: SteerCommand) -> Step:
    common: tuple[Any, ...] = (
        *bound.gate(),
        packed.number(application),
        packed.Id(command.command_id),
        fingerprint(command),
        packed.text(command.actor.subject),
        packed.text(command.actor.display),
        packed.text(command.actor.scheme),
        command.reason,
        packed.text(command.action.value),
        packed.number(command.expected_revision),
        packed.text(audit_target(command)),
    )
    if command.capacity is None:
        return Step("steer_queue", (*common, packed.text(command.key), packed.number(LIMITS_AT_ONCE), CALLS_MAX))
    scope = packed.Id(scope_id(command.application, command.kind, command.key))
    return Step("steer_capacity", (*common, scope, packed.number(command.capacity), CALLS_MAX))
