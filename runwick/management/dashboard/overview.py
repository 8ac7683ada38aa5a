"""The pages that show figures of many runs: the overview, the job types, and one type."""

from starlette.responses import Response

from runwick.management.dashboard import plots
from runwick.management.dashboard.rendering import Rendering
from runwick.management.permissions import Permission
from runwick.management.web.calls import Call
from runwick.management.web.routes import Route


class FigurePages:
    """Handlers of these pages.

    Args:
        rendering: makes the pages.
    """

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering

    def routes(self) -> list[Route]:
        """Their rows."""
        return [
            Route(method="GET", path="/", needs=Permission.JOBS_READ, handler=self.overview, summary="overview"),
            Route(method="GET", path="/types", needs=Permission.JOBS_READ, handler=self.types, summary="job types"),
            Route(
                method="GET",
                path="/types/{name:path}",
                needs=Permission.JOBS_READ,
                handler=self.type,
                summary="one type",
            ),
        ]

    async def overview(self, call: Call) -> Response:
        """What is wrong, and figures."""
        body = await call.desk.overview(call.caller)
        queues = await call.desk.queues(call.caller) if call.may(Permission.QUEUES_READ) else None
        return self._rendering.page(call, "overview.html", body=body, queues=queues)

    async def types(self, call: Call) -> Response:
        """Every type with its numbers."""
        return self._rendering.page(call, "types.html", body=await call.desk.types(call.caller))

    async def type(self, call: Call) -> Response:
        """What runs of one type cost, how they fail, and what that advises."""
        body = await call.desk.type(call.caller, call.path("name"))
        ways = (("by when the run ended", plots.over_time), ("by payload size", plots.by_payload))
        clouds = [(figure, by, cloud(body.points, figure)) for figure in plots.FIGURES for by, cloud in ways]
        return self._rendering.page(
            call,
            "type.html",
            body=body,
            spreads=body,
            marked=None,
            points=body.points[: plots.DOTS_MAX],
            clouds=[each for each in clouds if each[2] is not None],
        )
