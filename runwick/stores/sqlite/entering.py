"""Enter: new jobs are written down and wait."""

from collections.abc import Sequence
from typing import Final

from runwick.contracts.dispatching import Command
from runwick.stores.sqlite.interned import Naming
from runwick.stores.sqlite.leased import json_list
from runwick.stores.steps import Step, Steps

_NOTHING: Final = 0
_NEVER: Final = -1


def enter(naming: Naming, commands: Sequence[Command], first: int, now_ms: int) -> Steps[int]:
    """Create the jobs of these commands, but for those that are there by their id; answers how many it created.

    Args:
        first: the next position in commit order.
    """
    interned = naming.interned
    jobs: list[tuple[object, ...]] = []
    due: list[int] = []
    for position, command in enumerate(commands, first):
        application = yield from naming.number(interned.applications, command.application)
        lane = yield from naming.number(interned.lanes, (application, command.lane))
        kind = yield from naming.number(interned.kinds, (application, command.kind))
        policy = yield from naming.number(interned.policies, command.policy)
        expires_at_ms = command.expiry_ms(now_ms)
        # Python's module asks for adapters of bytes and of None each time that it binds one, not of what stands here.
        jobs.append(
            (
                position,
                bytearray(command.job_id),
                application,
                lane,
                kind,
                policy,
                bytearray(command.operation_id),
                now_ms,
                _NEVER if expires_at_ms is None else expires_at_ms,
                _NOTHING if command.tenant is None else command.tenant,
                _NOTHING if command.traceparent is None else command.traceparent,
                _NOTHING if command.tracestate is None else command.tracestate,
                _NOTHING if command.metadata is None else command.metadata,
                len(command.payload),
                command.payload,
            )
        )
        due.append(command.due_at_ms(now_ms))
    created: int = yield Step("dispatch_job", jobs, many=True)
    yield Step("dispatch_hot", (first, json_list(due)))
    return created
