"""The page of one job: where it stands and why, what its attempts cost, and what is shown only on request."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.responses import RedirectResponse, Response

from runwick.contracts.codes import CODES
from runwick.contracts.controls import ControlAction
from runwick.contracts.errors import RunwickError
from runwick.contracts.identity import id_bytes
from runwick.contracts.listing import AuditFilter
from runwick.contracts.revealing import Secret
from runwick.contracts.states import TERMINAL_STATES, JobState
from runwick.management.bodies import AuditBody, JobDetailBody, RevealBody, TypeDetailBody, WaitBody
from runwick.management.dashboard import history
from runwick.management.dashboard.asking import LookForm, Notices, RevealForm, target_of
from runwick.management.dashboard.jobs import ACTIONS
from runwick.management.dashboard.rendering import Rendering, href
from runwick.management.desk.ground import PAGE_MAX
from runwick.management.permissions import CONTROLS, SECRETS, Permission
from runwick.management.web.calls import Call
from runwick.management.web.refusals import refused_result
from runwick.management.web.routes import Kind, Route

NOTICES: Final = {
    "cancel": "It is cancelled and will not run.",
    "asked": "It was asked to stop. It stops when its handler heeds that, and may still succeed before.",
    "retry": "It has a new generation and is due now.",
    "rerun": "It has a new generation and is due now.",
    "look": "Its worker was asked for the stack; reveal it in a second or two.",
}
EXPLAINED: Final = {
    "cancel": "A waiting job ends at once. One that runs is asked to stop, and may still succeed before it does.",
    "retry": "It is due at once, as a new generation with its full budget again: {budget}.",
    "rerun": "It has succeeded. It is due again at once, as a new generation with its full budget: {budget}.",
}
_HEADINGS: Final = {
    Secret.PAYLOAD: "Damaged: this is no JSON",
    Secret.RESULT: "Damaged: this is no JSON",
    Secret.ERROR: "Traceback",
    Secret.BLACK_BOX: "Stack",
    Secret.STACK: "Stack",
}
"""What a text is."""
_APPLIES: Final = {
    ControlAction.CANCEL: frozenset(JobState) - TERMINAL_STATES,
    ControlAction.RETRY: frozenset({JobState.FAILED, JobState.CANCELLED}),
    ControlAction.RERUN: frozenset({JobState.SUCCEEDED}),
}


class JobPages:
    """Handlers of that page and its forms.

    Args:
        rendering: makes the pages.
    """

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering

    def routes(self) -> list[Route]:
        """Their rows."""
        return [
            Route(
                method="GET",
                path="/jobs/{job_id}",
                needs=Permission.JOBS_READ,
                query=Notices,
                handler=self.job,
                summary="one job",
            ),
            Route(
                method="POST",
                path="/jobs/{job_id}/reveal",
                needs=frozenset(SECRETS.values()),
                kind=Kind.REVEAL,
                body=RevealForm,
                handler=self.reveal,
                summary="show a secret",
            ),
            Route(
                method="POST",
                path="/jobs/{job_id}/look",
                needs=CONTROLS[ControlAction.LOOK],
                kind=Kind.CHANGE,
                body=LookForm,
                handler=self.look,
                summary="ask for a stack",
            ),
        ]

    async def job(self, call: Call) -> Response:
        """Everything about one job that is not private."""
        job = await call.desk.job(call.caller, call.path("job_id"))
        why, spreads, records = await asyncio.gather(_why(call, job), _spreads(call, job), _records(call, job))
        covers = call.caller.allowed.covers
        can_read_error = covers(Permission.JOBS_READ_ERROR, job.queue, job.tenant)
        return self._rendering.page(
            call,
            "job.html",
            job=job,
            why=why,
            as_of=why.as_of,
            hint=_hint(job),
            notice=NOTICES.get(call.query.notice or ""),
            explained={action: text.format(budget=_budget(job)) for action, text in EXPLAINED.items()},
            actions=[
                action.value
                for action in ACTIONS
                if job.state in _APPLIES[action] and covers(CONTROLS[action], job.queue, job.tenant)
            ],
            reveals=_reveals(job) if covers(Permission.JOBS_READ_PAYLOAD, job.queue, job.tenant) else (),
            can_read_error=can_read_error,
            can_look=can_read_error and job.state is JobState.RUNNING,
            history=history.steps(job, records),
            cpu=history.cpu_us,
            marked=history.marked(job),
            spreads=spreads,
        )

    async def reveal(self, call: Call) -> Response:
        """One secret, once it is written down who asked for it."""
        form: RevealForm = call.body
        job_id = call.path("job_id")
        body = await call.desk.reveal(call.caller, form.what, job_id, form.attempt, form.reason, form.command_id)
        return self._rendering.page(call, "revealed.html", polls=False, body=body, texts=_texts(body))

    async def look(self, call: Call) -> Response:
        """The worker is asked for the stack of what runs."""
        form: LookForm = call.body
        targets = [target_of(form.target)]
        (answer,) = await call.desk.control(call.caller, ControlAction.LOOK, targets, form.reason, form.command_id)
        if answer.code is not None:
            raise refused_result(answer.code, answer.command_id)
        return RedirectResponse(href(call.request, "/jobs/", answer.job_id, notice="look"), 303)


async def _why(call: Call, job: JobDetailBody) -> WaitBody:
    return await call.desk.why(call.caller, job.job_id)


async def _records(call: Call, job: JobDetailBody) -> Sequence[AuditBody]:
    """What operators did to it, where there is something that only the trail tells and the caller may read that."""
    if job.generation == 1 or not call.may(Permission.AUDIT_READ):
        return ()
    return (await call.desk.audit(call.caller, AuditFilter(job_id=id_bytes(job.job_id)), limit=PAGE_MAX)).records


async def _spreads(call: Call, job: JobDetailBody) -> TypeDetailBody | None:
    """How the figures lie over the runs of its type; None where nothing is known of them."""
    try:
        return await call.desk.type(call.caller, job.name)
    except RunwickError as error:
        if error.code != "not_found":
            raise
        return None


def _hint(job: JobDetailBody) -> str | None:
    """What the reason for which a job failed asks of people, as far as it is one of ours."""
    row = CODES.get(job.code or "") if job.state is JobState.FAILED else None
    return None if row is None else row.hint


def _budget(job: JobDetailBody) -> str:
    return "one execution" if job.max_executions == 1 else f"up to {job.max_executions:,} executions"


def _reveals(job: JobDetailBody) -> list[tuple[str, str]]:
    there = [(Secret.PAYLOAD, True), (Secret.RESULT, job.has_result)]
    return [(what.value, what.value) for what, is_there in there if is_there]


def _texts(body: RevealBody) -> list[tuple[str, str]]:
    """What was revealed, each with its heading; numbers of JSON stay as they were written."""
    if body.json is not None:
        return [("JSON", msgspec.json.format(bytes(body.json), indent=2).decode())]
    shown = []
    if body.log is not None:
        shown.append(("Last log lines", "\n".join(body.log) or "None."))
    if body.text:
        shown.append((_HEADINGS[Secret(body.what)], body.text))
    return shown
