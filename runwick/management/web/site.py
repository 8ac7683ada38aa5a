"""Everything together, as ``runwick web`` serves it and as a host mounts it in one piece.

/                dashboard
/api/v1/…        JSON API
/health/…        live and ready, if the host gives them
/sign-in         the door of a one-time link, if there is one
"""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Router
from starlette.routing import Route as Place
from starlette.types import ASGIApp

from runwick.management.web.headers import API_POLICY, secure
from runwick.management.web.management import Management
from runwick.management.web.one_time_link import PATH, OneTimeLink
from runwick.management.web.refusals import Refusal


def site(
    management: Management, *, title: str = "Runwick", health: ASGIApp | None = None, link: OneTimeLink | None = None
) -> ASGIApp:
    """The application.

    Args:
        management: who may ask, and the desk that does it.
        title: of the pages.
        health: answers below ``/health``; it needs no sign-in.
        link: the one that signs in on this machine; its scheme and grants are among the management's.
    """
    # They stand on this package, so it knows them only here.
    from runwick.management.dashboard import dashboard
    from runwick.management.http import api

    places: list[BaseRoute] = [Mount("/api", api(management))]
    if health is not None:
        places.append(Mount("/health", health))
    if link is not None:
        places.append(_door(link))
    pages = dashboard(management, title=title)
    places.append(Mount("/", pages))
    # A path that no mount takes, such as one with a line break in it, is refused by the pages like any other.
    return Router(places, redirect_slashes=False, default=pages)


def _door(link: OneTimeLink) -> Place:
    async def door(request: Request) -> Response:
        try:
            # What only looks whether a page is there must not use the link up.
            response = Response(status_code=405) if request.method == "HEAD" else await link.open(request)
        except Refusal as refusal:
            response = PlainTextResponse(f"{refusal.message}\n", refusal.status)
        return secure(response, API_POLICY)

    return Place(PATH, door, methods=["GET"], include_in_schema=False)
