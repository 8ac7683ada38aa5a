"""The API's handlers for queues, workers, scopes and rate windows."""

import msgspec

from runwick.contracts.errors import InvalidArgument
from runwick.contracts.limits import LimitKind
from runwick.management.bodies import QueueListBody, RateListBody, ScopeListBody, SteerBody, WorkerListBody
from runwick.management.commands import check_key, limit_kind
from runwick.management.http.asked import CapacityChange, LimitQuery, QueueChange
from runwick.management.web.calls import Call
from runwick.management.web.refusals import Now, not_found, refused_result


async def queues(call: Call) -> QueueListBody:
    """All queues."""
    return await call.desk.queues(call.caller)


async def workers(call: Call) -> WorkerListBody:
    """All workers."""
    return await call.desk.workers(call.caller)


async def scopes(call: Call) -> ScopeListBody:
    """A page of scopes."""
    asked: LimitQuery = call.query
    page = await call.desk.scopes(call.caller, asked.kind, call.cursor_in(asked.cursor), asked.limit)
    return msgspec.structs.replace(page, cursor=call.cursor_out(page.cursor))


async def rates(call: Call) -> RateListBody:
    """A page of rate windows."""
    asked: LimitQuery = call.query
    page = await call.desk.rates(call.caller, asked.kind, call.cursor_in(asked.cursor), asked.limit)
    return msgspec.structs.replace(page, cursor=call.cursor_out(page.cursor))


async def pause(call: Call) -> SteerBody:
    """Pause the queue of the path."""
    _, queue = _place(LimitKind.QUEUE, call.path("queue"))
    asked: QueueChange = call.body
    steer = call.desk.pause(call.caller, queue, asked.expected_revision, asked.reason, asked.command_id)
    return _done(await steer)


async def resume(call: Call) -> SteerBody:
    """Resume the queue of the path."""
    _, queue = _place(LimitKind.QUEUE, call.path("queue"))
    asked: QueueChange = call.body
    steer = call.desk.resume(call.caller, queue, asked.expected_revision, asked.reason, asked.command_id)
    return _done(await steer)


async def set_capacity(call: Call) -> SteerBody:
    """Change the scope of the path."""
    kind, key = _place(call.path("kind"), call.path("key"))
    asked: CapacityChange = call.body
    steer = call.desk.set_capacity(
        call.caller, kind, key, asked.capacity, asked.expected_revision, asked.reason, asked.command_id
    )
    return _done(await steer)


def _place(kind: str, key: str) -> tuple[LimitKind, str]:
    """What the path names; what cannot be a name names nothing."""
    try:
        known = limit_kind(kind)
        check_key(known, key)
    except InvalidArgument:
        raise not_found() from None
    return known, key


def _done(result: SteerBody) -> SteerBody:
    if result.code is not None:
        raise refused_result(result.code, result.command_id, Now(revision=result.revision, state=result.after))
    return result
