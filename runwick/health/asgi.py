"""``/live`` and ``/ready`` as an ASGI application that any other can mount, or a server run alone, without a framework.

It answers with one word, and 200 or 503; why is shown only where the host opted in, behind its own authorization.
"""

from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Final, Protocol

import msgspec

from runwick.contracts.health import HealthStatus, ProcessHealth, RoleCheck, worst

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]

_READS: Final = ("GET", "HEAD")
_TEXT: Final = "text/plain; charset=utf-8"


class HasHealth(Protocol):
    """A `Runwick` object, or whatever else knows the health of its process."""

    def health(self) -> ProcessHealth: ...


def health_app(source: HasHealth, *, show_reasons: bool = False) -> Application:
    """The endpoints ``/live`` and ``/ready``::

        app.mount("/health", health_app(rw))

    ``/live`` answers 503 when the process should be started anew, ``/ready`` when it should get no traffic: its worst
    role is unhealthy. Degraded is ready. Neither waits for a store; the first answers come before it was asked.

    Args:
        source: the application's `Runwick`.
        show_reasons: answer with each role's status and reason as JSON. For operators: mount it behind the host's
            own authorization.
    """

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await _answer(scope, send, *_response(source, scope, show_reasons))
            case "lifespan":
                await _live_through(source, receive, send)
            case _:  # a web socket
                await receive()
                await send({"type": "websocket.close", "code": 1000})

    return application


async def _live_through(source: HasHealth, receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            source.health()  # so that it knows something when it is first asked
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def _response(source: HasHealth, scope: Scope, show_reasons: bool) -> tuple[int, str, bytes]:
    """Status, content type and body."""
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    if path not in ("/live", "/ready"):
        return 404, _TEXT, b"not found\n"
    if scope["method"] not in _READS:
        return 405, _TEXT, b"method not allowed\n"
    health = source.health()
    checks = (health.live,) if path == "/live" else health.ready
    status = worst(check.status for check in checks)
    code = 503 if status is HealthStatus.UNHEALTHY else 200
    if show_reasons:
        return code, "application/json", _reasons(status, checks)
    return code, _TEXT, f"{status.value}\n".encode()


def _reasons(status: HealthStatus, checks: tuple[RoleCheck, ...]) -> bytes:
    return msgspec.json.encode({"status": status, "checks": checks})


async def _answer(scope: Scope, send: Send, status: int, content_type: str, body: bytes) -> None:
    headers = [
        (b"content-type", content_type.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *([(b"allow", ", ".join(_READS).encode())] if status == 405 else []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
