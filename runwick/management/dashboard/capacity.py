"""The pages of what work is done with: workers and their executors, pools, scopes and rate windows."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.responses import RedirectResponse, Response

from runwick.contracts.limits import LimitKind
from runwick.management.bodies import WorkerBody
from runwick.management.dashboard.asking import CapacityForm, ScopesQuery
from runwick.management.dashboard.rendering import Rendering, href
from runwick.management.permissions import Permission
from runwick.management.web.calls import Call
from runwick.management.web.refusals import Now, refused_result
from runwick.management.web.routes import Kind, Route

NOTICES: Final = {"capacity": "The capacity is set. What runs beyond it goes on to its end."}


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """All executors of one pool, over all living workers."""

    name: str
    workers: int
    executors: int
    busy: int
    phases: tuple[tuple[str, int], ...]
    """How many are in each, the most frequent first."""
    rss_bytes: int | None
    """Of those whose memory is known."""
    attempts: int
    restarts: int
    causes: tuple[str, ...]
    """Why executors were last restarted."""


class CapacityPages:
    """Handlers of these pages and their form.

    Args:
        rendering: makes the pages.
    """

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering

    def routes(self) -> list[Route]:
        """Their rows."""
        read = Permission.CAPACITY_READ
        return [
            Route(method="GET", path="/workers", needs=read, handler=self.workers, summary="workers"),
            Route(method="GET", path="/pools", needs=read, handler=self.pools, summary="pools"),
            Route(method="GET", path="/scopes", needs=read, query=ScopesQuery, handler=self.scopes, summary="limits"),
            Route(
                method="POST",
                path="/scopes/capacity",
                needs=Permission.CAPACITY_EDIT,
                kind=Kind.CHANGE,
                body=CapacityForm,
                handler=self.set_capacity,
                summary="set a capacity",
            ),
        ]

    async def workers(self, call: Call) -> Response:
        """Every worker with the grid of its executors."""
        return self._rendering.page(call, "workers.html", body=await call.desk.workers(call.caller))

    async def pools(self, call: Call) -> Response:
        """Every pool with what its executors do."""
        body = await call.desk.workers(call.caller)
        return self._rendering.page(call, "pools.html", pools=pools_of(body.workers), as_of=body.as_of)

    async def scopes(self, call: Call) -> Response:
        """Concurrency scopes and rate windows."""
        query: ScopesQuery = call.query
        scopes = await call.desk.scopes(call.caller, query.kind, call.cursor_in(query.cursor))
        rates = await call.desk.rates(call.caller, query.kind, call.cursor_in(query.after))
        kind = None if query.kind is None else query.kind.value
        return self._rendering.page(
            call,
            "scopes.html",
            scopes=scopes,
            rates=rates,
            kinds=[each.value for each in LimitKind],
            chosen_kind=kind,
            notice=NOTICES.get(query.notice or ""),
            next_scopes=href(
                call.request, "/scopes", kind=kind, cursor=call.cursor_out(scopes.cursor), after=query.after
            ),
            next_rates=href(
                call.request, "/scopes", kind=kind, cursor=query.cursor, after=call.cursor_out(rates.cursor)
            ),
        )

    async def set_capacity(self, call: Call) -> Response:
        """How many jobs may hold a scope at once."""
        form: CapacityForm = call.body
        answer = await call.desk.set_capacity(
            call.caller, form.kind, form.key, form.capacity, form.revision, form.reason, form.command_id
        )
        if answer.code is not None:
            raise refused_result(answer.code, answer.command_id, Now(revision=answer.revision))
        return RedirectResponse(href(call.request, "/scopes", notice="capacity"), 303)


def pools_of(workers: Sequence[WorkerBody]) -> list[Pool]:
    """The pools of living workers, by name."""
    alive = [worker for worker in workers if worker.alive]
    names = sorted({executor.pool for worker in alive for executor in worker.executors})
    return [_pool(name, alive) for name in names]


def _pool(name: str, workers: Sequence[WorkerBody]) -> Pool:
    by_worker = [[each for each in worker.executors if each.pool == name] for worker in workers]
    executors = [each for mine in by_worker for each in mine]
    known = [each.rss_bytes for each in executors if each.rss_bytes is not None]
    return Pool(
        name=name,
        workers=sum(1 for each in by_worker if each),
        executors=len(executors),
        busy=sum(1 for each in executors if each.attempt_id is not None or each.begun_at is not None),
        phases=tuple(Counter(each.phase for each in executors).most_common()),
        rss_bytes=sum(known) if known else None,
        attempts=sum(each.attempts for each in executors),
        restarts=sum(each.restarts for each in executors),
        causes=tuple(sorted({each.restarted_for for each in executors if each.restarted_for is not None})),
    )
