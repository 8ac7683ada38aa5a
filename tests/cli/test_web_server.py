"""How long a connection to ``runwick web`` may say nothing."""

import asyncio
import contextlib
import signal
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from runwick.cli import web_server
from runwick.cli.web_server import Connection

PATIENCE_S = 20.0
WAITED_S = 0.3
LARGE_BYTES = 16 * 1024 * 1024


async def slow(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers when it has been given time to be cut off."""
    if scope["path"] == "/large":
        await PlainTextResponse(b"x" * LARGE_BYTES)(scope, receive, send)
        return
    body = await Request(scope, receive).body()
    await asyncio.sleep(2 * WAITED_S)
    await PlainTextResponse(body or b"late")(scope, receive, send)


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(web_server, "SILENCE_S", WAITED_S)
    monkeypatch.setattr(web_server, "STALL_S", 4 * WAITED_S)
    with contextlib.closing(web_server.listen("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(slow, http=Connection, ws="none", lifespan="off", log_config=None))
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        yield bound.getsockname()
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that takes one connection at once."""
    monkeypatch.setattr(web_server, "CONNECTIONS_MAX", 1)
    heard = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    with contextlib.closing(web_server.listen("127.0.0.1", 0)) as bound:
        server = web_server.Server(slow, bound, "", None)
        stop = signal.getsignal(signal.SIGTERM)
        for number, before in heard.items():
            signal.signal(number, before)
        thread = threading.Thread(target=server.run)
        thread.start()
        yield web_server.origin_of(bound, "127.0.0.1")
        assert callable(stop)
        stop(signal.SIGTERM, None)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_who_is_one_too_many_is_told_when_to_come_again(crowded: str) -> None:
    with httpx.Client(timeout=PATIENCE_S, trust_env=False) as first, httpx.Client(trust_env=False) as second:
        assert first.get(crowded).text == "late"
        refused = second.get(crowded)
        assert (refused.status_code, refused.headers["retry-after"], refused.headers["connection"]) == (
            503,
            "1",
            "close",
        )
        first.close()
        until_s = time.monotonic() + PATIENCE_S
        while second.get(crowded, timeout=PATIENCE_S).status_code == 503:
            assert time.monotonic() < until_s


@pytest.mark.parametrize("said", [b"", b"G", b"GET / HTTP/1.1\r\nHost: here\r\n"], ids=["nothing", "a letter", "half"])
def test_who_asks_for_nothing_is_not_waited_for(address: tuple[str, int], said: bytes) -> None:
    with socket.create_connection(address, PATIENCE_S) as connection:
        connection.sendall(said)
        assert ended(connection)


def test_who_goes_on_saying_a_little_is_not_waited_for_either(address: tuple[str, int]) -> None:
    with socket.create_connection(address, PATIENCE_S) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n")
        until_s = time.monotonic() + PATIENCE_S
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < until_s:
                connection.sendall(b"A: b\r\n")
                time.sleep(0.01)
        assert time.monotonic() < until_s


def test_an_answer_takes_its_time_and_the_connection_is_kept_for_the_next(address: tuple[str, int]) -> None:
    with httpx.Client(base_url="http://{}:{}".format(*address), timeout=PATIENCE_S, trust_env=False) as client:
        assert [client.post("/", content=text).text for text in ("one", "", "three")] == ["one", "late", "three"]


def test_who_reads_nothing_is_not_waited_for(address: tuple[str, int]) -> None:
    with socket.create_connection(address, PATIENCE_S) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n")
        until_s = time.monotonic() + PATIENCE_S
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < until_s:  # it hears of the end only by writing
                connection.sendall(b"GET /next HTTP/1.1\r\nHost: here\r\n\r\n")
                time.sleep(0.05)
        assert time.monotonic() < until_s


def test_a_large_answer_is_read_slowly_to_its_end(address: tuple[str, int]) -> None:
    with socket.create_connection(address, PATIENCE_S) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        read = 0
        while text := connection.recv(LARGE_BYTES // 40):
            read += len(text)
            time.sleep(0.01)
        assert read > LARGE_BYTES


def ended(connection: socket.socket) -> bool:
    """Whether the other side has closed, when it has done something."""
    with contextlib.suppress(ConnectionError):
        return connection.recv(1) == b""
    return True
