"""What can be asked of the pages: every route with the rule that the matrix holds it to, and every way in which it can
be meant."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from runwick.contracts.states import JobState
from runwick.management.dashboard.rendering import Rendering
from runwick.management.permissions import Permission
from runwick.management.web.routes import Access
from tests.web.depot import KEY, NAMES, PRIVATE, Depot
from tests.web.ground import GONE

RENDERING: Final = Rendering("Depot", "depot", None)
MISSING: Final = {"own": "nix", NAMES["own"]: "order.none"}
"""Instead of a queue and a type; instead of a job it is `GONE`. All are as long as what they stand for."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One way to ask a route."""

    needs: Permission | Access
    """What lets a caller through."""
    path: str
    fields: Mapping[str, str | list[str]] = {}
    about: str = ""
    """The job, queue or type that it is about, as path and fields name it; empty for the whole application."""
    of: str = "own"
    """The queue of what it is about."""
    served: int = 200
    shows: str = ""
    """In the answer, if it is one."""
    each: tuple[str, ...] = ()
    """Where a list of jobs is posted, the queues of these; ``missing`` for one that is not there. It is answered job by
    job, whatever is hidden."""
    prepared: bool = False
    """It is about a queue that is paused."""


def asks(depot: Depot) -> dict[tuple[str, str], list[Ask]]:
    """Every route of the pages with all that it can be asked. A route that is not here is a route without a rule."""
    may = Permission
    own, other = depot.jobs["own"], depot.jobs["other"]
    queue = {"queue": "own", "revision": str(depot.queue_revision)}
    job = [
        Ask(needs=may.JOBS_READ, path=f"/jobs/{job_id}", about=job_id, of=of, shows=job_id)
        for of, jobs in depot.jobs.items()
        for job_id in jobs.values()
    ]
    look = {"target": depot.target("own", JobState.RUNNING)}
    elsewhere = {"target": depot.target("other", JobState.RUNNING)}
    running = own[JobState.RUNNING]
    scope = {"kind": "resource", "key": KEY, "revision": str(depot.scope_revision), "capacity": "5"}
    everything = [*own.values(), *other.values()]
    return {
        ("GET", "/"): [Ask(needs=may.JOBS_READ, path="/")],
        ("GET", "/types"): [Ask(needs=may.JOBS_READ, path="/types")],
        ("GET", "/types/{name:path}"): [
            Ask(needs=may.JOBS_READ, path=f"/types/{NAMES['own']}", about=NAMES["own"], shows=NAMES["own"])
        ],
        ("GET", "/jobs"): [Ask(needs=may.JOBS_READ, path=path) for path in ("/jobs", "/jobs?limit=100")],
        ("GET", "/jobs/{job_id}"): job,
        ("POST", "/jobs/cancel"): controls(depot, may.JOBS_CANCEL, "cancel", JobState.PENDING)
        + controls(depot, may.JOBS_CANCEL, "cancel", JobState.RUNNING),
        ("POST", "/jobs/retry"): controls(depot, may.JOBS_RETRY, "retry", JobState.FAILED),
        ("POST", "/jobs/rerun"): controls(depot, may.JOBS_RERUN, "rerun", JobState.SUCCEEDED),
        ("POST", "/jobs/{job_id}/reveal"): reveals(depot),
        ("POST", "/jobs/{job_id}/look"): [
            Ask(needs=may.JOBS_READ_ERROR, path=f"/jobs/{running}/look", fields=look, about=running, served=303),
            Ask(
                needs=may.JOBS_READ_ERROR,
                path=f"/jobs/{running}/look",  # what counts is the job of the form
                fields=elsewhere,
                about=other[JobState.RUNNING],
                of="other",
                served=303,
            ),
        ],
        ("GET", "/queues"): [Ask(needs=may.QUEUES_READ, path="/queues")],
        ("GET", "/queues/{queue:path}"): [
            Ask(needs=may.QUEUES_READ, path="/queues/own", about="own", shows="<bdi>own</bdi>")
        ],
        ("POST", "/queues/pause"): [
            Ask(needs=may.QUEUES_CONTROL, path="/queues/pause", fields=queue | back, about="own", served=303)
            for back in ({}, {"back": "queue"})
        ],
        ("POST", "/queues/resume"): [
            Ask(
                needs=may.QUEUES_CONTROL,
                path="/queues/resume",
                fields={"queue": "own", "revision": str(depot.queue_revision + 1)},
                about="own",
                served=303,
                prepared=True,
            )
        ],
        ("GET", "/workers"): [Ask(needs=may.CAPACITY_READ, path="/workers", shows="worker-1")],
        ("GET", "/pools"): [Ask(needs=may.CAPACITY_READ, path="/pools", shows="<bdi>main</bdi>")],
        ("GET", "/scopes"): [Ask(needs=may.CAPACITY_READ, path="/scopes", shows=KEY)],
        ("POST", "/scopes/capacity"): [Ask(needs=may.CAPACITY_EDIT, path="/scopes/capacity", fields=scope, served=303)],
        ("GET", "/audit"): [
            Ask(needs=may.AUDIT_READ, path=path)
            for path in ("/audit", *(f"/audit?job={job_id}" for job_id in everything))
        ],
        ("GET", "/settings"): [Ask(needs=may.SETTINGS_READ, path="/settings", shows="depot.db")],
        ("POST", "/theme"): [Ask(needs=Access.SIGNED_IN, path="/theme", fields={"theme": "dark"}, served=303)],
        ("GET", "/static/{digest}/{name}"): [Ask(needs=Access.OPEN, path=RENDERING.assets.path("main.js"))],
    }


def controls(depot: Depot, needs: Permission, action: str, state: JobState) -> list[Ask]:
    """What may be done to one job from its page and from the list, and to several at once."""
    path, targets = f"/jobs/{action}", {queue: depot.target(queue, state) for queue in NAMES}
    found = []
    for of, target in targets.items():
        about = depot.jobs[of][state]
        found += [
            Ask(needs=needs, path=path, fields={"target": target, "one": "1"}, about=about, of=of, served=303),
            Ask(needs=needs, path=path, fields={"target": [target]}, about=about, of=of, each=(of,)),
        ]
    several = [*targets.values(), f"{GONE}:1:1"]
    return [*found, Ask(needs=needs, path=path, fields={"target": several}, each=(*targets, "missing"))]


def reveals(depot: Depot) -> list[Ask]:
    """Every secret of a job of each queue."""
    payload, error = Permission.JOBS_READ_PAYLOAD, Permission.JOBS_READ_ERROR
    found = []
    for needs, what, state in (
        (payload, "payload", JobState.PENDING),
        (payload, "result", JobState.SUCCEEDED),
        (error, "error", JobState.FAILED),
        (error, "black_box", JobState.FAILED),
        (error, "stack", JobState.RUNNING),
    ):
        for of, jobs in depot.jobs.items():
            attempt = {"attempt": depot.attempts[of][state]} if needs is error else {}
            path, about = f"/jobs/{jobs[state]}/reveal", jobs[state]
            found.append(
                Ask(needs=needs, path=path, fields={"what": what} | attempt, about=about, of=of, shows=PRIVATE)
            )
    return found


def missing_of(ask: Ask) -> str:
    """What is not there, instead of what it is about."""
    return MISSING.get(ask.about, GONE)


def instead(ask: Ask) -> Ask:
    """The same about something that is not there."""
    missing = missing_of(ask)
    assert len(missing) == len(ask.about)

    def replaced(value: str | list[str]) -> Any:
        return value.replace(ask.about, missing) if isinstance(value, str) else [*map(replaced, value)]

    fields = {name: replaced(value) for name, value in ask.fields.items()}
    return msgspec.structs.replace(ask, path=replaced(ask.path), fields=fields)
