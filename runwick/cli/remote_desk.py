"""The desk of a server, over its API: the same questions and the same bodies as the desk on a store."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from runwick.cli.contexts import Context
from runwick.cli.desks import Change, HandDispatch
from runwick.cli.remote_link import Query, RemoteLink
from runwick.contracts.controls import ControlAction, JobTarget
from runwick.contracts.identity import id_bytes, id_text
from runwick.contracts.limits import LimitKind
from runwick.contracts.listing import AuditFilter, JobFilter
from runwick.contracts.revealing import Secret
from runwick.management import bodies
from runwick.management.desk.shown import time_text

T = TypeVar("T")
BodyType = type[T]
"""What an answer is read into; a desk has a method `type`, in whose class the word means that."""

_NULL: Final = b"null"


class _Controls(msgspec.Struct):
    results: tuple[bodies.ControlBody, ...]


class _Revealed(bodies.RevealBody, frozen=True, kw_only=True):
    """With its JSON as it came, numbers exact."""

    json: msgspec.Raw = msgspec.Raw(_NULL)


class RemoteDesk:
    """`OperatorDesk` of a server.

    Args:
        context: where it is and how to sign in.
        secret: password or token.
    """

    is_remote = True

    def __init__(self, context: Context, secret: str) -> None:
        self.link = RemoteLink(context, secret)

    async def overview(self) -> bodies.OverviewBody:
        return await self.link.get("/overview", bodies.OverviewBody)

    async def types(self) -> bodies.TypeListBody:
        return await self.link.get("/types", bodies.TypeListBody)

    async def type(self, name: str) -> bodies.TypeDetailBody:
        return await self.link.get(f"/types/{_part(name)}", bodies.TypeDetailBody)

    async def jobs(self, chosen: JobFilter, cursor: str | None, limit: int) -> bodies.JobListBody:
        states = [("state", state.value) for state in sorted(chosen.states or ())]
        query = _query(
            queue=chosen.queue,
            name=chosen.name,
            tenant=chosen.tenant,
            code=chosen.code,
            until=_moment(chosen.created_until_ms),
            cursor=cursor,
            limit=limit,
            **{"from": _moment(chosen.created_from_ms)},
        )
        return await self.link.get("/jobs", bodies.JobListBody, [*states, *query])

    async def job(self, job_id: str) -> bodies.JobDetailBody:
        return await self.link.get(f"/jobs/{_id(job_id)}", bodies.JobDetailBody)

    async def why(self, job_id: str) -> bodies.WaitBody:
        return await self.link.get(f"/jobs/{_id(job_id)}/why", bodies.WaitBody)

    async def control(self, action: ControlAction, target: JobTarget, change: Change) -> bodies.ControlBody:
        path = f"/jobs/{id_text(target.job_id)}/{action.value}"
        expected = {"expectedGeneration": target.generation, "expectedRevision": target.revision}
        return await self._post(path, bodies.ControlBody, expected, change)

    async def control_many(
        self, action: ControlAction, targets: Sequence[JobTarget], change: Change
    ) -> Sequence[bodies.ControlBody]:
        asked = [
            {
                "jobId": id_text(each.job_id),
                "expectedGeneration": each.generation,
                "expectedRevision": each.revision,
            }
            for each in targets
        ]
        return (await self._post(f"/jobs/{action.value}", _Controls, {"targets": asked}, change)).results

    async def reveal(self, what: Secret, job_id: str, attempt_id: str | None, change: Change) -> bodies.RevealBody:
        asked = {"what": what.value, "attemptId": attempt_id}
        body = await self._post(f"/jobs/{_id(job_id)}/reveal", _Revealed, asked, change)
        shown = None if bytes(body.json) == _NULL else body.json
        return bodies.RevealBody(**{**msgspec.structs.asdict(body), "json": shown})

    async def dispatch(self, asked: HandDispatch, change: Change) -> bodies.DispatchBody:
        body = {
            "name": asked.name,
            "payload": msgspec.Raw(asked.payload),
            "queue": asked.queue,
            "priority": asked.priority,
            "delayMs": asked.delay_ms,
            "tenant": asked.tenant,
        }
        return await self._post("/jobs", bodies.DispatchBody, body, change)

    async def queues(self) -> bodies.QueueListBody:
        return await self.link.get("/queues", bodies.QueueListBody)

    async def pause(self, queue: str, expected_revision: int, change: Change) -> bodies.SteerBody:
        return await self._steer(f"/queues/{_part(queue)}/pause", {"expectedRevision": expected_revision}, change)

    async def resume(self, queue: str, expected_revision: int, change: Change) -> bodies.SteerBody:
        return await self._steer(f"/queues/{_part(queue)}/resume", {"expectedRevision": expected_revision}, change)

    async def workers(self) -> bodies.WorkerListBody:
        return await self.link.get("/workers", bodies.WorkerListBody)

    async def scopes(self, kind: LimitKind | None, cursor: str | None, limit: int) -> bodies.ScopeListBody:
        return await self.link.get("/scopes", bodies.ScopeListBody, _query(kind=kind, cursor=cursor, limit=limit))

    async def rates(self, kind: LimitKind | None, cursor: str | None, limit: int) -> bodies.RateListBody:
        return await self.link.get("/rates", bodies.RateListBody, _query(kind=kind, cursor=cursor, limit=limit))

    async def set_capacity(
        self, kind: LimitKind, key: str, capacity: int, expected_revision: int, change: Change
    ) -> bodies.SteerBody:
        path = f"/scopes/{kind.value}/{_part(key)}/capacity"
        return await self._steer(path, {"capacity": capacity, "expectedRevision": expected_revision}, change)

    async def events(self, after: str | None, limit: int) -> bodies.EventListBody:
        return await self.link.get("/events", bodies.EventListBody, _query(after=after, limit=limit))

    async def audit(self, chosen: AuditFilter, cursor: str | None, limit: int) -> bodies.AuditListBody:
        query = _query(
            action=chosen.action,
            actor=chosen.actor,
            job=None if chosen.job_id is None else id_text(chosen.job_id),
            target=chosen.target,
            until=_moment(chosen.at_until_ms),
            cursor=cursor,
            limit=limit,
            **{"from": _moment(chosen.at_from_ms)},
        )
        return await self.link.get("/audit", bodies.AuditListBody, query)

    async def settings(self) -> bodies.SettingsBody:
        return await self.link.get("/settings", bodies.SettingsBody)

    async def sign_in(self) -> None:
        """Go on only if the server lets the caller in; then close what was open.

        Raises:
            RunwickError: it does not, or nobody answers.
        """
        try:
            await self.link.greet("/antiforgery")
        finally:
            await self.link.aclose()

    async def aclose(self) -> None:
        await self.link.aclose()

    async def _steer(self, path: str, asked: dict[str, Any], change: Change) -> bodies.SteerBody:
        return await self._post(path, bodies.SteerBody, asked, change)

    async def _post(self, path: str, of: BodyType[T], asked: dict[str, Any], change: Change) -> T:
        body = {**asked, "reason": change.reason}
        given = {name: value for name, value in body.items() if value is not None}
        return await self.link.post(path, of, given, change.command_id)


def _id(job_id: str) -> str:
    """An id in its one spelling.

    Raises:
        InvalidArgument: it is none (code ``invalid_id``).
    """
    return id_text(id_bytes(job_id))


def _part(text: str) -> str:
    """One part of a path; one of nothing but dots would lead elsewhere."""
    return quote(text, safe="") if text.strip(".") else "%2E" * len(text)


def _query(**given: object) -> Query:
    return [(name, str(value)) for name, value in given.items() if value is not None]


def _moment(at_ms: int | None) -> str | None:
    return None if at_ms is None else time_text(at_ms)
