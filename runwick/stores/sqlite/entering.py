"""Enter: new jobs are written down and wait."""

from collections.abc import Sequence

from runwick.contracts.dispatching import Command
from runwick.stores.sqlite.interned import Naming
from runwick.stores.sqlite.leased import json_list
from runwick.stores.steps import Step, Steps


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
        jobs.append(
            (
                position,
                command.job_id,
                application,
                lane,
                kind,
                policy,
                command.operation_id,
                now_ms,
                command.expiry_ms(now_ms),
                command.tenant,
                command.traceparent,
                command.tracestate,
                command.metadata,
                len(command.payload),
                command.payload,
            )
        )
        due.append(command.due_at_ms(now_ms))
    created: int = yield Step("dispatch_job", jobs, many=True)
    yield Step("dispatch_hot", (first, json_list(due)))
    return created
