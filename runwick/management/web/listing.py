"""A list of jobs for an application's own users: one route that the application mounts beside its own.

It is none of management: the application says whose request it is and whether he may look, and the list is cut to his
tenant before it is paged. It never shows a payload.
"""

import enum
import inspect
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, Protocol, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Place
from starlette.routing import Router
from starlette.types import ASGIApp

from runwick.contracts.ambient import Clock
from runwick.contracts.controls import ManagementActor
from runwick.contracts.listing import JobFilter
from runwick.contracts.states import JobState
from runwick.management.bodies import Body, JobBody
from runwick.management.desk import Desk
from runwick.management.permissions import Caller, Grant, Permission
from runwick.management.web import reading, sealing
from runwick.management.web.headers import API_POLICY, secure
from runwick.management.web.refusals import Refusal, refusal_of
from runwick.management.web.sealing import Seal
from runwick.runtime.ambient import SystemClock

PATH: Final = "/api/jobs"
_CURSOR_LIFETIME_S: Final = 3_600
_ACTOR: Final = ManagementActor("user", "a user of the application", "application")
"""Nothing is written in his name: he only reads."""

T = TypeVar("T")


class DefaultTenant(enum.Enum):
    """Its one member says on purpose that somebody sees the jobs without a tenant."""

    DEFAULT_TENANT = "default"


DEFAULT_TENANT: Final = DefaultTenant.DEFAULT_TENANT
Whose = str | DefaultTenant | None
Tenant = Callable[[Request], Whose | Awaitable[Whose]]
Permitted = Callable[[Request], bool | Awaitable[bool]]


class HasDesk(Protocol):
    """A `Runwick`."""

    @property
    def desk(self) -> Desk: ...


class ListedJobBody(Body, frozen=True, kw_only=True):
    """One job as its tenant sees it."""

    job_id: str
    type: str
    state: JobState
    attempts: int
    """Executions that have begun."""
    created_at: str
    next_due_at: str | None
    last_error_code: str | None

    @classmethod
    def of(cls, job: JobBody) -> "ListedJobBody":
        """What is shown of a job."""
        return cls(
            job_id=job.job_id,
            type=job.name,
            state=job.state,
            attempts=job.executions,
            created_at=job.created_at,
            next_due_at=job.due_at,
            last_error_code=job.code,
        )


class ListedJobsBody(Body, frozen=True, kw_only=True):
    """A page, the newest first."""

    jobs: tuple[ListedJobBody, ...]
    cursor: str | None
    """What to go on with; null when there are no more."""


class _Query(msgspec.Struct, frozen=True, kw_only=True):
    state: JobState | None = None
    cursor: str | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 50


def jobs_router(
    desk: "Desk | HasDesk",
    *,
    tenant: Tenant,
    permitted: Permitted,
    signing_key: bytes | None = None,
    clock: Clock | None = None,
) -> ASGIApp:
    """An application with the one route ``GET /api/jobs``, to be mounted at the root or under a prefix.

    Args:
        desk: the application's `Runwick`, or its desk.
        tenant: whose jobs a request is about: a tenant, or `DEFAULT_TENANT` for the jobs without one. None, as of a
            session that has ended, answers 403. Plain or async.
        permitted: whether its sender may see them. Plain or async; False answers 403.
        signing_key: at least 32 bytes, the same in all processes behind one address, for cursors; None: a random one.
        clock: says when a cursor is too old.

    Raises:
        ConfigurationError: the key is too short (code ``invalid_management``).
    """
    behind = desk if isinstance(desk, Desk) else desk.desk
    seal = Seal(sealing.signing_key(signing_key), "listing", clock or SystemClock(), _CURSOR_LIFETIME_S)

    async def listing(request: Request) -> Response:
        try:
            body: object = await _page(request, behind, seal, tenant, permitted)
            status = 200
        except Exception as error:
            refusal = refusal_of(error)
            body, status = refusal.body, refusal.status
        return secure(Response(msgspec.json.encode(body), status, media_type="application/json"), API_POLICY)

    return Router([Place(PATH, listing, methods=["GET"])], redirect_slashes=False)


async def _page(request: Request, desk: Desk, seal: Seal, tenant: Tenant, permitted: Permitted) -> ListedJobsBody:
    if not await _answer(permitted(request)):
        raise Refusal(403, "forbidden", "you may not see the jobs")
    asked = reading.read_query(request, _Query)
    given = await _answer(tenant(request))
    if given is None:
        raise Refusal(403, "forbidden", "you may not see the jobs")
    whose = None if given is DEFAULT_TENANT else given
    bound = msgspec.json.encode([whose, asked.state])
    after = None if asked.cursor is None else seal.open(asked.cursor, bound)
    if asked.cursor is not None and after is None:
        raise Refusal(400, "invalid_cursor", "the cursor is too old, or of another list; read from the beginning")
    # His grant alone cuts the list, so that the tenant is part of what may be seen and not of what is asked.
    caller = Caller.of(_ACTOR, [Grant(Permission.JOBS_READ, tenants=frozenset((whose,)))])
    chosen = JobFilter(states=None if asked.state is None else frozenset((asked.state,)))
    page = await desk.jobs(caller, chosen, None if after is None else after.decode(), asked.limit)
    cursor = None if page.cursor is None else seal.close(page.cursor.encode(), bound)
    return ListedJobsBody(jobs=tuple(map(ListedJobBody.of, page.jobs)), cursor=cursor)


async def _answer(given: T | Awaitable[T]) -> T:
    return await given if inspect.isawaitable(given) else given
