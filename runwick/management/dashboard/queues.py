"""The pages of queues: how far behind each is, and pausing and resuming it."""

from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from runwick.management.bodies import SteerBody
from runwick.management.dashboard.asking import Notices, QueueForm
from runwick.management.dashboard.rendering import Rendering, href
from runwick.management.permissions import Permission
from runwick.management.web.calls import Call
from runwick.management.web.refusals import Now, not_found, refused_result
from runwick.management.web.routes import Kind, Route

NOTICES: Final = {
    "pause": "It is paused: nothing more is claimed from it.",
    "resume": "It is resumed: its jobs are claimed again.",
}


class QueuePages:
    """Handlers of these pages and their forms.

    Args:
        rendering: makes the pages.
    """

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering

    def routes(self) -> list[Route]:
        """Their rows."""
        read, control = Permission.QUEUES_READ, Permission.QUEUES_CONTROL
        return [
            Route(method="GET", path="/queues", needs=read, query=Notices, handler=self.queues, summary="queues"),
            Route(
                method="POST",
                path="/queues/pause",
                needs=control,
                kind=Kind.CHANGE,
                body=QueueForm,
                handler=self.pause,
                summary="pause a queue",
            ),
            Route(
                method="POST",
                path="/queues/resume",
                needs=control,
                kind=Kind.CHANGE,
                body=QueueForm,
                handler=self.resume,
                summary="resume a queue",
            ),
            Route(
                method="GET",
                path="/queues/{queue:path}",
                needs=read,
                query=Notices,
                handler=self.queue,
                summary="one queue",
            ),
        ]

    async def queues(self, call: Call) -> Response:
        """All of them."""
        body = await call.desk.queues(call.caller)
        return self._rendering.page(call, "queues.html", body=body, **_shared(call))

    async def queue(self, call: Call) -> Response:
        """One of them, and who serves it."""
        body = await call.desk.queues(call.caller)
        queue = next((each for each in body.queues if each.queue == call.path("queue")), None)
        if queue is None:
            raise not_found()
        workers = None
        if call.may(Permission.CAPACITY_READ):
            known = (await call.desk.workers(call.caller)).workers
            workers = [worker for worker in known if worker.alive and queue.queue in worker.queues]
        shared = _shared(call)
        return self._rendering.page(call, "queue.html", queue=queue, as_of=body.as_of, workers=workers, **shared)

    async def pause(self, call: Call) -> Response:
        """Claim nothing more from it."""
        form: QueueForm = call.body
        answer = await call.desk.pause(call.caller, form.queue, form.revision, form.reason, form.command_id)
        return _back(call, form, "pause", answer)

    async def resume(self, call: Call) -> Response:
        """Claim from it again."""
        form: QueueForm = call.body
        answer = await call.desk.resume(call.caller, form.queue, form.revision, form.reason, form.command_id)
        return _back(call, form, "resume", answer)


def _shared(call: Call) -> dict[str, Any]:
    return {
        "notice": NOTICES.get(call.query.notice or ""),
        "controls": lambda queue: call.caller.allowed.covers_queue(Permission.QUEUES_CONTROL, queue),
    }


def _back(call: Call, form: QueueForm, notice: str, answer: SteerBody) -> Response:
    """To the page from which it was done.

    Raises:
        Refusal: nothing was done.
    """
    if answer.code is not None:
        raise refused_result(answer.code, answer.command_id, Now(revision=answer.revision))
    return RedirectResponse(href(call.request, *form.seen_at, notice=notice), 303)
