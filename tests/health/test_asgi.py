"""The endpoints, mounted and alone."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from runwick.contracts.health import HealthStatus, ProcessHealth, RoleCheck
from runwick.health import health_app

HEALTHY, DEGRADED, UNHEALTHY = HealthStatus


class Source:
    """Says what the test wants."""

    def __init__(self, *ready: HealthStatus, live: HealthStatus = HEALTHY) -> None:
        self.asked = 0
        self._health = ProcessHealth(
            RoleCheck("live", live, "a reason", 1),
            tuple(RoleCheck("producer", status, "a reason", 2, "at host db.internal") for status in ready),
        )

    def health(self) -> ProcessHealth:
        self.asked += 1
        return self._health


def ask(application: Any, path: str, method: str = "GET") -> httpx.Response:
    async def asked() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://here") as client:
            return await client.request(method, path)

    return asyncio.run(asked())


@pytest.mark.parametrize(
    ("path", "source", "status", "word"),
    [
        ("/ready", Source(HEALTHY), 200, "healthy"),
        ("/ready", Source(HEALTHY, DEGRADED), 200, "degraded"),
        ("/ready", Source(DEGRADED, UNHEALTHY), 503, "unhealthy"),
        ("/ready", Source(HEALTHY, live=UNHEALTHY), 200, "healthy"),
        ("/live", Source(UNHEALTHY), 200, "healthy"),
        ("/live", Source(HEALTHY, live=UNHEALTHY), 503, "unhealthy"),
    ],
)
@pytest.mark.parametrize("mount", ["", "/health", "/ops/health"])
def test_one_word_is_all_that_strangers_read(mount: str, path: str, source: Source, status: int, word: str) -> None:
    answer = ask(Starlette(routes=[Mount(mount, health_app(source))]), mount + path)
    assert (answer.status_code, answer.text) == (status, f"{word}\n")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_reasons_are_an_opt_in() -> None:
    answer = ask(health_app(Source(HEALTHY, UNHEALTHY), show_reasons=True), "/ready")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/json")
    told = json.loads(answer.text)
    assert told["status"] == "unhealthy"
    assert told["checks"][1] == {
        "role": "producer",
        "status": "unhealthy",
        "reason": "a reason",
        "observedAtMs": 2,
        "text": "at host db.internal",
    }


def test_head_has_no_body_and_nothing_else_is_answered() -> None:
    application = health_app(Source(UNHEALTHY))
    head = ask(application, "/ready", "HEAD")
    assert (head.status_code, head.text, head.headers["content-length"]) == (503, "", "10")
    assert [ask(application, path).status_code for path in ("/", "/ready/", "/details")] == [404, 404, 404]
    refused = ask(application, "/ready", "POST")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


def test_the_start_of_its_server_begins_to_look() -> None:
    source, sent = Source(HEALTHY), []
    orders = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, str]:
        return {"type": next(orders)}

    async def send(message: Any) -> None:
        sent.append((message["type"], source.asked))

    asyncio.run(health_app(source)({"type": "lifespan"}, receive, send))
    assert sent == [("lifespan.startup.complete", 1), ("lifespan.shutdown.complete", 1)]


def test_a_web_socket_is_closed() -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(health_app(Source(HEALTHY))({"type": "websocket", "path": "/live"}, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]
