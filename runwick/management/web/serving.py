"""From a table of routes to an ASGI application: every request goes through here, in this order.

    route ─▶ who ─▶ how often ─▶ allowed ─▶ body ─▶ meant ─▶ read ─▶ handler ─▶ answer
     404      401      429         403       400     403     400
     405                                     408

A place in the process's gate is held while something is done, never while a client is waited for: a body that dribbles
in keeps nobody else out.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as Place
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from runwick.contracts.controls import ManagementActor
from runwick.management.permissions import Caller, Forbidden
from runwick.management.web import antiforgery, reading
from runwick.management.web.calls import Call
from runwick.management.web.headers import secure
from runwick.management.web.management import Management
from runwick.management.web.principals import Principal
from runwick.management.web.refusals import Refusal, not_found, refusal_of
from runwick.management.web.routes import Access, Kind, Route, Table

Fields = list[tuple[str, str]]

NOBODY: Final = Principal(subject="nobody", display="nobody", scheme="none", is_browser=False)
"""Whoever asks for what is open to all. He is granted nothing."""


class Face(Protocol):
    """How one face writes what the handlers answer and what is refused."""

    policy: str
    """The content security policy of its answers."""
    takes_forms: bool
    """Its posts are forms, with the antiforgery token in a field; otherwise they are JSON."""

    def answer(self, call: Call, body: Any) -> Response:
        """The response for what a handler answered."""
        ...

    def refuse(self, request: Request, refusal: Refusal, call: Call | None) -> Response:
        """The response for a refusal; the call is None where it came before one was made."""
        ...


def serve(table: Table, management: Management, face: Face, *, arrival_s: float = reading.ARRIVAL_S) -> ASGIApp:
    """The application of a table.

    Args:
        table: its routes.
        management: who may ask, and the desk that does it.
        face: how answers look.
        arrival_s: seconds within which a body must come.
    """
    places = [
        Place(path, _Door(methods, management, face, arrival_s), methods=None, include_in_schema=False)
        # What is spelled out goes before what has parameters: /jobs/cancel is no job's id.
        for path, methods in sorted(table.by_path.items(), key=lambda each: "{" in each[0])
    ]
    return Router(places, redirect_slashes=False, default=_Nowhere(face))


class _Nowhere:
    """What answers where no route leads."""

    def __init__(self, face: Face) -> None:
        self._face = face

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await Router().not_found(scope, receive, send)
            return
        request = Request(scope, receive)
        response = self._face.refuse(request, not_found(), None)
        await secure(response, self._face.policy)(scope, receive, send)


class _Door:
    """All methods of one path."""

    def __init__(self, methods: Mapping[str, Route], management: Management, face: Face, arrival_s: float) -> None:
        self._methods = methods
        self._management = management
        self._face = face
        self._arrival_s = arrival_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        passage = _Passage(request, self._management, self._face, self._arrival_s)
        try:
            response = await passage.through(self._route(request))
        except ClientDisconnect:
            return
        except Exception as error:
            response = self._face.refuse(request, refusal_of(error, passage.command_id), passage.call)
        secure(response, self._face.policy)
        if request.method == "HEAD":
            response.body = b""
        await response(scope, receive, send)

    def _route(self, request: Request) -> Route:
        route = self._methods.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            allowed = ", ".join([*self._methods, *(["HEAD"] if "GET" in self._methods else [])])
            raise Refusal(405, "method_not_allowed", f"this takes {allowed}", headers={"Allow": allowed})
        return route


class _Passage:
    """One request on its way to a handler, and what is known of it so far."""

    def __init__(self, request: Request, management: Management, face: Face, arrival_s: float) -> None:
        self._request = request
        self._management = management
        self._face = face
        self._arrival_s = arrival_s
        self.call: Call | None = None
        self.command_id: str | None = None

    async def through(self, route: Route) -> Response:
        """All the way to the answer.

        Raises:
            Exception: whatever refuses it on the way, or went wrong.
        """
        reading.check_headers(self._request)
        async with self._management.gate.pass_through():
            call = self.call = await self._called(route)
            _check_allowed(call)
        text, fields = await self._arrived(route)
        if route.kind is not Kind.READ and call.principal.is_browser:
            header = self._request.headers.get(antiforgery.HEADER)
            token = header or next((value for name, value in fields or () if name == antiforgery.FIELD), None)
            self._management.antiforgery.check(self._request, call.principal, token)
        async with self._management.gate.pass_through():
            body = self._body(route, text, fields)
            self.command_id = _command_id(body)
            query = reading.read_query(self._request, route.query, blank_is_absent=self._face.takes_forms)
            call = self.call = msgspec.structs.replace(call, query=query, body=body)
            answer = await route.handler(call)
        return answer if isinstance(answer, Response) else self._face.answer(call, answer)

    async def _called(self, route: Route) -> Call:
        """The call as far as it is known before anything of it is read: who asks, counted."""
        if route.needs is Access.OPEN:
            principal = NOBODY
            caller = Caller.of(ManagementActor(NOBODY.subject, NOBODY.display, NOBODY.scheme), ())
        else:
            principal = await self._management.authenticate(self._request)
            self._management.callers.charge(principal, route.kind)
            caller = await self._management.caller(principal)
        return Call(request=self._request, management=self._management, route=route, principal=principal, caller=caller)

    async def _arrived(self, route: Route) -> tuple[bytes, Fields | None]:
        """The body: its bytes, and where it is a form its fields."""
        if route.kind is Kind.READ or (route.body is None and not self._face.takes_forms):
            return b"", None
        accepted = frozenset({reading.JSON, reading.FORM} if self._face.takes_forms else {reading.JSON})
        text = await reading.read_body(self._request, accepted, self._arrival_s)
        is_form = self._request.headers["content-type"].lower().startswith(reading.FORM)
        return text, reading.form_fields(text) if is_form else None

    def _body(self, route: Route, text: bytes, fields: Fields | None) -> msgspec.Struct | None:
        if route.body is None:
            return None
        if fields is None:
            return reading.json_body(text, route.body)
        return reading.form_body([each for each in fields if each[0] != antiforgery.FIELD], route.body)


def _check_allowed(call: Call) -> None:
    """That the caller may take this route at all.

    Raises:
        Forbidden: he may not.
    """
    needed = call.route.permissions
    if needed and not needed & call.caller.allowed.permissions:
        raise Forbidden(min(needed))


def _command_id(body: msgspec.Struct | None) -> str | None:
    """Under which a change can be asked for again."""
    given = getattr(body, "command_id", None)
    return None if given is None else str(given)
