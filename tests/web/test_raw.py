"""Bytes on the wire to a real server: whatever comes, it is answered or closed, and the next caller is served."""

import contextlib
import random
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import uvicorn

from runwick.management.http import api
from runwick.management.http.face import JsonFace
from runwick.management.http.table import TABLE
from runwick.management.web.serving import serve
from tests.web.ground import Client, Site, bearer, shop

DEADLINE_S: Final = 20.0
WAITING_S: Final = 0.5
HEAD: Final = b"Host: localhost\r\nAuthorization: Bearer token-of-robot\r\n"
JSON: Final = HEAD + b"Content-Type: application/json\r\n"
PAUSE: Final = b"POST /v1/queues/own/pause HTTP/1.1\r\n" + JSON


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    rw = shop(tmp_path_factory.mktemp("shop"))
    site = Site(rw)
    app = serve(TABLE, site.management, JsonFace(), arrival_s=0.2)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, http="h11", ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + DEADLINE_S
    while not server.started:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(DEADLINE_S)
    rw.close()
    assert not thread.is_alive()


def sent(port: int, text: bytes) -> bytes:
    """What comes back: one answer, or nothing where the connection is closed. Where the server waits for more, it is
    told that no more comes."""
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as connection:
        with contextlib.suppress(ConnectionError):  # it may close before it has read all
            connection.sendall(text)
        if not select.select([connection], [], [], WAITING_S)[0]:
            connection.shutdown(socket.SHUT_WR)
        return received(connection)


def received(connection: socket.socket) -> bytes:
    answer = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65_536):
            answer += part
            head, found, body = answer.partition(b"\r\n\r\n")
            length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"")
            if found and length and len(body) >= int(length.partition(b":")[2]):
                break
    return answer


def status(answer: bytes) -> int | None:
    """The status of an answer; None where the connection was closed without one."""
    return int(answer.split(b" ", 2)[1]) if answer else None


def is_served(port: int) -> bool:
    return status(sent(port, b"GET /v1/queues HTTP/1.1\r\n" + HEAD + b"\r\n")) == 200


ODD: Final[dict[str, tuple[bytes, set[int | None]]]] = {
    "no length": (PAUSE + b"\r\n{}", {400}),
    "two lengths": (PAUSE + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", {400}),
    "a length that is none": (PAUSE + b"Content-Length: 1e3\r\n\r\n{}", {400}),
    "a length below zero": (PAUSE + b"Content-Length: -1\r\n\r\n{}", {400}),
    "a length beyond all": (PAUSE + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n{}", {400}),
    "a length and chunks": (PAUSE + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    "an unknown coding": (PAUSE + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", {400, 501}),
    "a bad chunk size": (PAUSE + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", {400, None}),
    "an endless chunk size": (PAUSE + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 100_000, {400, None}),
    "a chunk without its end": (PAUSE + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n", {400, None}),
    "good chunks of bad JSON": (PAUSE + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n", {400}),
    "members given twice": (PAUSE + b'Content-Length: 13\r\n\r\n{"a":1,"a":1}', {400}),
    "a huge number": (PAUSE + b'Content-Length: 11\r\n\r\n{"a":1e400}', {400}),
    "overlong UTF-8": (PAUSE + b'Content-Length: 10\r\n\r\n{"a":"\xc0\xaf"}', {400}),
    "a NUL in the body": (PAUSE + b'Content-Length: 9\r\n\r\n{"a":"\0"}', {400}),
    "deep nesting": (PAUSE + b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000, {400}),
    "one huge header": (b"GET /v1/jobs HTTP/1.1\r\n" + HEAD + b"X: " + b"x" * 200_000 + b"\r\n\r\n", {400, 431, None}),
    "very many headers": (b"GET /v1/jobs HTTP/1.1\r\n" + HEAD + b"X: 1\r\n" * 20_000 + b"\r\n", {400, 431, None}),
    "a header without a name": (b"GET /v1/jobs HTTP/1.1\r\n" + HEAD + b": 1\r\n\r\n", {400}),
    "a NUL in a header": (b"GET /v1/jobs HTTP/1.1\r\n" + HEAD + b"X: \0\r\n\r\n", {400}),
    "a folded header": (b"GET /v1/jobs HTTP/1.1\r\n" + HEAD + b"X: 1\r\n  2\r\n\r\n", {200, 400}),
    "two hosts": (b"GET /v1/jobs HTTP/1.1\r\nHost: a\r\n" + HEAD + b"\r\n", {400}),
    "a long target": (b"GET /v1/jobs?queue=" + b"q" * 60_000 + b" HTTP/1.1\r\n" + HEAD + b"\r\n", {400, 414}),
    "a NUL in the target": (b"GET /v1/jobs/\0 HTTP/1.1\r\n" + HEAD + b"\r\n", {400}),
    "an encoded NUL": (b"GET /v1/jobs/%00 HTTP/1.1\r\n" + HEAD + b"\r\n", {404}),
    "overlong dots": (b"GET /v1/%c0%ae%c0%ae/jobs HTTP/1.1\r\n" + HEAD + b"\r\n", {404}),
    "bytes beyond ASCII": (b"GET /v1/jobs/\xff\xfe HTTP/1.1\r\n" + HEAD + b"\r\n", {400}),
    "half an escape": (b"GET /v1/jobs/%f HTTP/1.1\r\n" + HEAD + b"\r\n", {404}),
    "an absolute target": (b"GET http://evil.example/v1/jobs HTTP/1.1\r\n" + HEAD + b"\r\n", {200, 400, 404}),
    "an old version": (b"GET /v1/jobs HTTP/0.9\r\n\r\n", {400, 401}),
    "no HTTP at all": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {400, None}),
    "a lone line feed": (b"GET /v1/jobs HTTP/1.1\n" + HEAD.replace(b"\r\n", b"\n") + b"\n", {200, 400}),
    "a CONNECT": (b"CONNECT evil.example:443 HTTP/1.1\r\n" + HEAD + b"\r\n", {400, 404, 405}),
    "a websocket": (
        b"GET /v1/jobs HTTP/1.1\r\n" + HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        {200, 400, 404, 426},
    ),
}


@pytest.mark.parametrize("what", ODD)
def test_odd_requests_are_refused_and_the_next_one_is_served(port: int, what: str) -> None:
    text, allowed = ODD[what]
    answer = sent(port, text)
    assert status(answer) in allowed
    assert b"Traceback" not in answer
    assert is_served(port)


def test_a_body_that_never_comes_is_given_up(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as connection:
        connection.sendall(PAUSE + b"Content-Length: 100\r\n\r\n{")
        answer = received(connection)
        assert status(answer) == 408
        assert b"connection: close" in answer.lower()
        with contextlib.suppress(ConnectionError):
            assert connection.recv(1) == b""
    assert is_served(port)


def test_a_client_that_goes_away_midway_disturbs_nobody(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as connection:
        connection.sendall(PAUSE + b"Content-Length: 100\r\n\r\n{")
    assert is_served(port)


def test_who_is_not_signed_in_need_not_be_read(port: int) -> None:
    """The refusal comes before the body does."""
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as connection:
        connection.sendall(PAUSE.replace(b"robot", b"").replace(b"Bearer", b"Nobody") + b"Content-Length: 100\r\n\r\n")
        assert status(received(connection)) == 401


def test_requests_with_random_bytes_changed(port: int) -> None:
    dice = random.Random(7)
    good = PAUSE + b'Content-Length: 23\r\n\r\n{"expectedRevision": 0 }'
    for _ in range(200):
        text = bytearray(good)
        for _ in range(dice.randint(1, 6)):
            text[dice.randrange(len(text))] = dice.randrange(256)
        answer = sent(port, bytes(text))
        assert (status(answer) or 400) < 500, bytes(text)
    assert is_served(port)


def test_the_same_over_asgi_alone(tmp_path: Path) -> None:
    """A server that decodes less than this one is no way in either."""
    rw = shop(tmp_path)
    robot = Client(api(Site(rw).management), bearer())
    for path in ("/v1/jobs/%00", "/v1/%c0%ae%c0%ae/jobs", "/v1/jobs/%f", "/v1/jobs/%ff%fe", "/" + "a/" * 5_000):
        assert robot.get(path).status_code == 404
    rw.close()
