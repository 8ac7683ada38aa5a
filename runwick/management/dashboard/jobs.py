"""The list of jobs, and what is done to several of them."""

from typing import Final

from starlette.responses import RedirectResponse, Response

from runwick.contracts.controls import ControlAction
from runwick.contracts.states import JobState
from runwick.management.bodies import ControlBody
from runwick.management.dashboard.asking import PAGE_ROWS, ControlForm, JobsQuery
from runwick.management.dashboard.refusing import refusal_text
from runwick.management.dashboard.rendering import Rendering, href
from runwick.management.permissions import CONTROLS, Permission
from runwick.management.web.calls import Call
from runwick.management.web.refusals import Now, refused_result
from runwick.management.web.routes import Handler, Kind, Route

ACTIONS: Final = (ControlAction.CANCEL, ControlAction.RETRY, ControlAction.RERUN)
MATCHING_ROWS: Final = 100
"""Rows of a page as the walk over all that match reads them."""


class JobsPages:
    """Handlers of the list and its forms.

    Args:
        rendering: makes the pages.
    """

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering

    def routes(self) -> list[Route]:
        """Their rows."""
        controls = [
            Route(
                method="POST",
                path=f"/jobs/{action}",
                needs=CONTROLS[action],
                kind=Kind.CHANGE,
                body=ControlForm,
                handler=self._controlling(action),
                summary=f"{action} jobs",
            )
            for action in ACTIONS
        ]
        needs = Permission.JOBS_READ
        listed = Route(method="GET", path="/jobs", needs=needs, query=JobsQuery, handler=self.jobs, summary="jobs")
        return [listed, *controls]

    async def jobs(self, call: Call) -> Response:
        """The jobs of a filter."""
        query: JobsQuery = call.query
        body = await call.desk.jobs(call.caller, query.chosen, call.cursor_in(query.cursor), query.limit)
        suggestions = await _suggestions(call) if query.limit == PAGE_ROWS else {}
        cursor = call.cursor_out(body.cursor)
        limit = None if query.limit == PAGE_ROWS else query.limit
        return self._rendering.page(
            call,
            "jobs.html",
            body=body,
            chosen=query.kept,
            suggestions=suggestions,
            is_filtered=any(query.kept.values()),
            states=[state.value for state in JobState],
            actions=[action.value for action in ACTIONS if call.may(CONTROLS[action])],
            shows_tenant=any(job.tenant is not None for job in body.jobs),
            next_link=href(call.request, "/jobs", **query.kept, limit=limit, cursor=cursor),
            matching_link=href(call.request, "/jobs", **query.kept, limit=MATCHING_ROWS),
        )

    def _controlling(self, action: ControlAction) -> Handler:
        async def control(call: Call) -> Response:
            form: ControlForm = call.body
            answers = await call.desk.control(call.caller, action, form.targets, form.reason, form.command_id)
            if form.one:
                return _back(call, action, answers[0])
            return self._rendering.page(
                call,
                "answered.html",
                polls=False,
                action=action.value,
                answers=answers,
                done=sum(answer.succeeded for answer in answers),
                refusal=refusal_text,
            )

        return control


async def _suggestions(call: Call) -> dict[str, list[str]]:
    """What a filter may well be about: the types and queues that the caller sees. A walk over all pages needs none."""
    types = await call.desk.types(call.caller)
    queues = (await call.desk.queues(call.caller)).queues if call.may(Permission.QUEUES_READ) else ()
    return {"names": [each.name for each in types.types], "queues": [each.queue for each in queues]}


def _back(call: Call, action: ControlAction, answer: ControlBody) -> Response:
    """To the page of the one job that it was about.

    Raises:
        Refusal: nothing was done.
    """
    if answer.code is not None:
        state = None if answer.state is None else answer.state.value
        now = Now(generation=answer.generation, revision=answer.revision, state=state)
        raise refused_result(answer.code, answer.command_id, now)
    notice = "asked" if answer.cancel_requested else action.value
    return RedirectResponse(href(call.request, "/jobs/", answer.job_id, notice=notice), 303)
