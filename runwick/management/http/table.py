"""The API's table of routes."""

from typing import Any, Final

import msgspec
from starlette.responses import Response

from runwick.contracts.controls import ControlAction
from runwick.management import bodies
from runwick.management.http import answered, application, asked, jobs, limits
from runwick.management.http.openapi import document
from runwick.management.permissions import CONTROLS, SECRETS, Permission
from runwick.management.web.calls import Call
from runwick.management.web.reading import NoQuery
from runwick.management.web.routes import Access, Handler, Kind, Needs, Route, Table


def _read(path: str, needs: Needs, handler: Handler, answer: Any, summary: str, query: Any = NoQuery) -> Route:
    return Route(
        method="GET", path=f"/v1{path}", needs=needs, handler=handler, query=query, answer=answer, summary=summary
    )


def _change(
    path: str, needs: Needs, handler: Handler, body: Any, answer: Any, summary: str, kind: Kind = Kind.CHANGE
) -> Route:
    return Route(
        method="POST",
        path=f"/v1{path}",
        needs=needs,
        handler=handler,
        kind=kind,
        body=body,
        answer=answer,
        summary=summary,
    )


async def _openapi(call: Call) -> Response:
    return Response(
        msgspec.json.encode(document(TABLE, call.request.scope.get("root_path", ""))), media_type="application/json"
    )


_READS: Final = (
    _read(
        "/antiforgery",
        Access.SIGNED_IN,
        application.antiforgery,
        answered.AntiforgeryBody,
        "A token for the posts of browsers and Basic clients",
    ),
    _read("/openapi.json", Access.SIGNED_IN, _openapi, dict[str, Any], "This document"),
    _read(
        "/overview",
        Permission.JOBS_READ,
        application.overview,
        bodies.OverviewBody,
        "What is wrong first, then figures",
    ),
    _read(
        "/types", Permission.JOBS_READ, application.types, bodies.TypeListBody, "Job types with what their runs cost"
    ),
    _read(
        "/types/{name}",
        Permission.JOBS_READ,
        application.type_detail,
        bodies.TypeDetailBody,
        "One job type with its last runs",
    ),
    _read("/jobs", Permission.JOBS_READ, jobs.jobs, bodies.JobListBody, "Jobs, the latest first", asked.JobQuery),
    _read("/jobs/{job_id}", Permission.JOBS_READ, jobs.job, bodies.JobDetailBody, "One job with its history"),
    _read("/jobs/{job_id}/why", Permission.JOBS_READ, jobs.why, bodies.WaitBody, "Why a job waits"),
    _read(
        "/queues", Permission.QUEUES_READ, limits.queues, bodies.QueueListBody, "Queues, and how far behind they are"
    ),
    _read("/workers", Permission.CAPACITY_READ, limits.workers, bodies.WorkerListBody, "Workers and their executors"),
    _read(
        "/scopes",
        Permission.CAPACITY_READ,
        limits.scopes,
        bodies.ScopeListBody,
        "Limits of how many run at once",
        asked.LimitQuery,
    ),
    _read(
        "/rates",
        Permission.CAPACITY_READ,
        limits.rates,
        bodies.RateListBody,
        "Limits of how many begin within a time",
        asked.LimitQuery,
    ),
    _read(
        "/events",
        Permission.JOBS_READ,
        jobs.events,
        bodies.EventListBody,
        "What happened to jobs, in order",
        asked.EventQuery,
    ),
    _read(
        "/audit",
        Permission.AUDIT_READ,
        application.audit,
        bodies.AuditListBody,
        "What operators did, the latest first",
        asked.AuditQuery,
    ),
    _read(
        "/settings", Permission.SETTINGS_READ, application.settings, bodies.SettingsBody, "The store and the options"
    ),
)

_DONE_TO_JOBS: Final = {
    ControlAction.CANCEL: "Cancel",
    ControlAction.RETRY: "Give a fresh generation, after failure or cancellation, to",
    ControlAction.RERUN: "Run once more, after success,",
}

_CHANGES: Final = (
    *(
        _change(
            f"/jobs/{action}",
            CONTROLS[action],
            jobs.control_many(action),
            asked.ControlsChange,
            answered.ControlListBody,
            f"{done} up to 100 jobs",
        )
        for action, done in _DONE_TO_JOBS.items()
    ),
    *(
        _change(
            f"/jobs/{{job_id}}/{action}",
            CONTROLS[action],
            jobs.control(action),
            asked.ControlChange,
            bodies.ControlBody,
            f"{done} a job",
        )
        for action, done in {**_DONE_TO_JOBS, ControlAction.LOOK: "Ask for the stack of"}.items()
    ),
    _change(
        "/jobs/{job_id}/reveal",
        frozenset(SECRETS.values()),
        jobs.reveal,
        asked.RevealChange,
        bodies.RevealBody,
        "Show a payload, result, error, black box or stack; it is audited",
        Kind.REVEAL,
    ),
    _change(
        "/jobs",
        Permission.JOBS_DISPATCH,
        jobs.dispatch,
        asked.DispatchChange,
        bodies.DispatchBody,
        "Create a job by hand",
    ),
    _change(
        "/queues/{queue}/pause",
        Permission.QUEUES_CONTROL,
        limits.pause,
        asked.QueueChange,
        bodies.SteerBody,
        "Claim nothing more from a queue",
    ),
    _change(
        "/queues/{queue}/resume",
        Permission.QUEUES_CONTROL,
        limits.resume,
        asked.QueueChange,
        bodies.SteerBody,
        "Claim from a queue again",
    ),
    _change(
        "/scopes/{kind}/{key:path}/capacity",
        Permission.CAPACITY_EDIT,
        limits.set_capacity,
        asked.CapacityChange,
        bodies.SteerBody,
        "Change how many jobs may hold a scope at once",
    ),
)

TABLE: Final = Table((*_READS, *_CHANGES))
"""Every way into the API."""
