"""An ASGI application served by Uvicorn in this process. Its socket listens before anybody is told of it, ending as
told is no failure, and nobody keeps a connection without asking for something."""

import asyncio
import signal
import socket
from typing import TYPE_CHECKING, Final

import click
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

CONNECTIONS_MAX: Final = 256
"""Most connections at once; what is asked while there are more is answered 503."""
RETRY_S: Final = 1
"""When it may be asked again then."""
SILENCE_S = 10.0
"""How long a connection has to bring a request's head, from its beginning or from the answer before."""
STALL_S = 60.0
"""How long it may take nothing of what is left of an answer. Systems take it in large pieces, with long pauses."""
STOP_S: Final = 10
"""How long requests that are under way have when it is told to stop."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections; port 0 takes a free one.

    Raises:
        click.UsageError: there is no such address here, or somebody else has it.
    """
    try:
        (family, kind, number, _, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        bound = socket.socket(family, kind, number)
    except OSError as error:
        raise click.UsageError(f"--host {host} is no address: {error.strerror}.") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen()
    except OSError as error:
        bound.close()
        raise click.UsageError(
            f"nobody can listen on {host}, port {port}: {error.strerror}. --port names another one, 0 takes a free one."
        ) from None
    return bound


def origin_of(bound: socket.socket, host: str) -> str:
    """The address that a browser opens, without a path."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{bound.getsockname()[1]}"


class Connection(H11Protocol):
    """One connection. Uvicorn waits for ever for a request, and for its answer to be read, so that a few hundred silent
    ones would keep everybody out; this one is closed when nothing has come, or gone, in time. How long a body may take
    is the application's to say."""

    _next_look: asyncio.TimerHandle | None = None
    _left_bytes = 0
    """Of an answer, at the last look."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as Uvicorn's own
        super().connection_made(transport)
        self._look_later()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _look_later(self, left_bytes: int = 0) -> None:
        self._forget()
        self._left_bytes = left_bytes
        self._next_look = self.loop.call_later(STALL_S if left_bytes else SILENCE_S, self._look)

    def _look(self) -> None:
        left_bytes = self.transport.get_write_buffer_size()
        asks_nothing = not left_bytes and (self.cycle is None or self.cycle.response_complete)
        reads_nothing = 0 < left_bytes == self._left_bytes
        if asks_nothing or reads_nothing:
            self.transport.abort()
        else:
            self._look_later(left_bytes)

    def _forget(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()


class Server:
    """Answers requests until TERM or Ctrl-C, which it hears from now on; a second Ctrl-C does not wait for those that
    are under way.

    Args:
        application: what answers.
        bound: where it listens.
        root_path: the path below which a proxy serves it, which it takes away before it asks here.
        trusted: addresses, with commas between, that are believed what they forward of client and scheme.
    """

    def __init__(self, application: "ASGIApp", bound: socket.socket, root_path: str, trusted: str | None) -> None:
        self._application = application
        self._bound = bound
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._answer,
                interface="asgi3",
                http=Connection,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                root_path=root_path,
                proxy_headers=trusted is not None,
                forwarded_allow_ips=trusted or "",
                timeout_graceful_shutdown=STOP_S,
            )
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def run(self) -> None:
        """Until it was told to stop."""
        self._server.run(sockets=[self._bound])

    async def _answer(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """As the application does, unless there are too many to ask it. Uvicorn's own limit does not say when to come
        again."""
        answer = self._application
        if len(self._server.server_state.connections) > CONNECTIONS_MAX:
            headers = {"Retry-After": str(RETRY_S), "Connection": "close"}
            answer = PlainTextResponse("too many connections", 503, headers)
        await answer(scope, receive, send)

    def _stop(self, number: int, frame: object) -> None:
        """Before it runs, and again when it has stopped: it raises what it heard once more for whoever heard before."""
        self._server.should_exit = True
