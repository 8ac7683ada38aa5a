"""The API's handlers for jobs."""

import datetime
from collections.abc import Sequence

import msgspec

from runwick.contracts.controls import ControlAction, JobTarget
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.identity import id_bytes
from runwick.contracts.listing import JobFilter
from runwick.management.bodies import (
    ControlBody,
    DispatchBody,
    EventListBody,
    JobDetailBody,
    JobListBody,
    RevealBody,
    WaitBody,
)
from runwick.management.http.answered import ControlListBody
from runwick.management.http.asked import (
    ControlChange,
    ControlsChange,
    DispatchChange,
    EventQuery,
    JobQuery,
    RevealChange,
)
from runwick.management.web.calls import Call
from runwick.management.web.management import EVENT_CURSOR_LIFETIME_S
from runwick.management.web.refusals import not_found, refused_control
from runwick.management.web.routes import Handler


async def jobs(call: Call) -> JobListBody:
    """A page of jobs."""
    asked: JobQuery = call.query
    chosen = JobFilter(
        states=frozenset(asked.state) or None,
        queue=asked.queue,
        name=asked.name,
        tenant=asked.tenant,
        code=asked.code,
        created_from_ms=epoch_ms(asked.from_),
        created_until_ms=epoch_ms(asked.until),
    )
    page = await call.desk.jobs(call.caller, chosen, call.cursor_in(asked.cursor), asked.limit)
    return msgspec.structs.replace(page, cursor=call.cursor_out(page.cursor))


async def job(call: Call) -> JobDetailBody:
    """One job."""
    return await call.desk.job(call.caller, _job_id(call))


async def why(call: Call) -> WaitBody:
    """Why one waits."""
    return await call.desk.why(call.caller, _job_id(call))


async def events(call: Call) -> EventListBody:
    """A page of events. Each has a cursor of its own, to go on behind it."""
    asked: EventQuery = call.query
    page = await call.desk.events(call.caller, call.cursor_in(asked.after), asked.limit)

    def out(cursor: str) -> str | None:
        return call.cursor_out(cursor, EVENT_CURSOR_LIFETIME_S)

    shown = [msgspec.structs.replace(each, cursor=out(each.cursor)) for each in page.events]
    return msgspec.structs.replace(page, events=tuple(shown), cursor=out(page.cursor))


def control(action: ControlAction) -> Handler:
    """The handler that does this to the job of the path."""

    async def handler(call: Call) -> ControlBody:
        asked: ControlChange = call.body
        target = JobTarget(id_bytes(_job_id(call)), asked.expected_generation, asked.expected_revision)
        [result] = await _controlled(call, action, [target])
        if result.code is not None:
            raise refused_control(action, result.code, result)
        return result

    return handler


def control_many(action: ControlAction) -> Handler:
    """The handler that does this to the jobs of the body."""

    async def handler(call: Call) -> ControlListBody:
        asked: ControlsChange = call.body
        targets = [
            JobTarget(each.job_id.bytes, each.expected_generation, each.expected_revision) for each in asked.targets
        ]
        return ControlListBody(results=tuple(await _controlled(call, action, targets)))

    return handler


async def reveal(call: Call) -> RevealBody:
    """One secret of the job of the path."""
    asked: RevealChange = call.body
    attempt_id = None if asked.attempt_id is None else str(asked.attempt_id)
    return await call.desk.reveal(call.caller, asked.what, _job_id(call), attempt_id, asked.reason, asked.command_id)


async def dispatch(call: Call) -> DispatchBody:
    """A job by hand."""
    asked: DispatchChange = call.body
    return await call.desk.dispatch(
        call.caller,
        asked.name,
        bytes(asked.payload),
        queue=asked.queue,
        priority=asked.priority,
        delay_ms=asked.delay_ms,
        tenant=asked.tenant,
        reason=asked.reason,
        command_id=asked.command_id,
    )


def epoch_ms(moment: datetime.datetime | None) -> int | None:
    """Milliseconds since 1970, rounded down."""
    return None if moment is None else int(moment.timestamp() * 1_000 // 1)


async def _controlled(call: Call, action: ControlAction, targets: Sequence[JobTarget]) -> list[ControlBody]:
    return await call.desk.control(call.caller, action, targets, call.body.reason, call.body.command_id)


def _job_id(call: Call) -> str:
    """The id of the path; what is no id names no job."""
    given = call.path("job_id")
    try:
        id_bytes(given)
    except InvalidArgument:
        raise not_found() from None
    return given
