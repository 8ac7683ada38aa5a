"""All pages of one mount: their table, and how their answers and refusals look."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from runwick.management.dashboard.capacity import CapacityPages
from runwick.management.dashboard.job import JobPages
from runwick.management.dashboard.jobs import JobsPages
from runwick.management.dashboard.overview import FigurePages
from runwick.management.dashboard.queues import QueuePages
from runwick.management.dashboard.refusing import refused_page
from runwick.management.dashboard.rendering import Rendering
from runwick.management.dashboard.trail import TrailPages
from runwick.management.web.calls import Call
from runwick.management.web.management import Management
from runwick.management.web.refusals import Refusal, not_found
from runwick.management.web.routes import Access, Route, Table
from runwick.management.web.serving import serve

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Of every page: nothing inline, nothing from elsewhere."""

_KEPT: Final = "public, max-age=31536000, immutable"
"""Of files whose address changes with what is in them."""


def mounted(management: Management, title: str, sign_out_path: str | None) -> ASGIApp:
    """The application; `runwick.management.dashboard.dashboard` says what it takes."""
    rendering = Rendering(title, management.desk.application, sign_out_path)
    return serve(table(rendering), management, PageFace(rendering))


def table(rendering: Rendering) -> Table:
    """Every page and form, with the rule of each."""
    groups = (FigurePages, JobsPages, JobPages, QueuePages, CapacityPages, TrailPages)
    rows = [row for group in groups for row in group(rendering).routes()]
    return Table([*rows, _static(rendering)])


class PageFace:
    """Refusals as pages; what handlers answer is a page already.

    Args:
        rendering: makes the pages.
    """

    policy = POLICY
    takes_forms = True

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering

    def answer(self, call: Call, body: Any) -> Response:
        """Never asked for: every handler of a page answers with a response."""
        raise TypeError(f"the handler of {call.route.path} answered with {type(body).__name__}, which is no response")

    def refuse(self, request: Request, refusal: Refusal, call: Call | None) -> Response:
        """The page that says what was not done."""
        return refused_page(self._rendering, request, refusal, call)


def _static(rendering: Rendering) -> Route:
    async def file(call: Call) -> Response:
        asset = rendering.assets.get(call.path("digest"), call.path("name"))
        if asset is None:
            raise not_found()
        return Response(asset.content, media_type=asset.media_type, headers={"Cache-Control": _KEPT})

    return Route(method="GET", path="/static/{digest}/{name}", needs=Access.OPEN, handler=file, summary="a file")
