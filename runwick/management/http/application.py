"""The API's handlers for the application as a whole: figures, types, the audit trail, settings, and what a client needs
to know of the API itself."""

import msgspec

from runwick.contracts.listing import AuditFilter
from runwick.management.bodies import AuditListBody, OverviewBody, SettingsBody, TypeDetailBody, TypeListBody
from runwick.management.http.answered import AntiforgeryBody
from runwick.management.http.asked import AuditQuery
from runwick.management.http.jobs import epoch_ms
from runwick.management.web.antiforgery import HEADER
from runwick.management.web.calls import Call


async def antiforgery(call: Call) -> AntiforgeryBody:
    """A token of the caller's."""
    return AntiforgeryBody(token=call.antiforgery, header_name=HEADER)


async def overview(call: Call) -> OverviewBody:
    """What is wrong, and figures."""
    return await call.desk.overview(call.caller)


async def types(call: Call) -> TypeListBody:
    """All job types."""
    return await call.desk.types(call.caller)


async def type_detail(call: Call) -> TypeDetailBody:
    """The type of the path."""
    return await call.desk.type(call.caller, call.path("name"))


async def audit(call: Call) -> AuditListBody:
    """A page of the audit trail."""
    asked: AuditQuery = call.query
    chosen = AuditFilter(
        action=asked.action,
        actor=asked.actor,
        job_id=None if asked.job is None else asked.job.bytes,
        target=asked.target,
        at_from_ms=epoch_ms(asked.from_),
        at_until_ms=epoch_ms(asked.until),
    )
    page = await call.desk.audit(call.caller, chosen, call.cursor_in(asked.cursor), asked.limit)
    return msgspec.structs.replace(page, cursor=call.cursor_out(page.cursor))


async def settings(call: Call) -> SettingsBody:
    """The store, and the options of the process that answers."""
    return await call.desk.settings(call.caller)
