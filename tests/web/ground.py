"""An application on a real SQLite store, its management, and callers of every kind."""

import asyncio
import base64
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from runwick import Job, PerResource, Runwick
from runwick.management.permissions import EVERYTHING, Grant
from runwick.management.web import BasicScheme, BearerScheme, Management, ManagementLimits, Principal, SessionScheme
from runwick.management.web.basic import passwords
from tests.ambient import FakeClock

KEY: Final = b"k" * 32
PASSWORDS: Final = {"ops": "correct horse", "other": "battery staple"}
PLENTY: Final = ManagementLimits(reads_per_minute=100_000, changes_per_minute=100_000, reveals_per_minute=100_000)
GONE: Final = "0199c0de-0000-7000-8000-0000000000ff"
"""The id of no job."""


class Pack(Job):
    number: int = 0


class Ship(Job):
    order: str = ""


def shop(folder: Path) -> Runwick:
    """The application, with its store migrated."""
    rw = Runwick("shop", store=f"sqlite:///{folder}/shop.db")
    rw.job("order.pack", queue="own", per_resource=(PerResource(lambda job: f"line/{job.number}", 2),))(Pack)
    rw.job("order.ship", queue="other")(Ship)
    rw.migrate()
    return rw


class Site:
    """One management with its schemes, and whom it grants what.

    Args:
        rw: the application.
        grants: of everybody, until a test changes them.
        limits: plenty by default.
        clock: that everything counts by.
    """

    def __init__(
        self, rw: Runwick, grants: Sequence[Grant] = EVERYTHING, limits: ManagementLimits = PLENTY, **options: Any
    ) -> None:
        self.rw = rw
        self.grants = grants
        self.clock = FakeClock()
        self.session = SessionScheme(KEY, clock=self.clock)
        self.management = Management(
            rw.desk,
            schemes=[
                self.session,
                BasicScheme(passwords(PASSWORDS), clock=self.clock),
                BearerScheme(_bearer),
            ],
            grants=lambda principal: self.grants,
            limits=limits,
            signing_key=KEY,
            clock=self.clock,
            **options,
        )

    def cookie(self, subject: str = "ops") -> str:
        """The header of a new session."""
        response = Response()
        self.session.sign_in(Request({"type": "http", "headers": [], "root_path": ""}), response, subject)
        return response.headers["set-cookie"].partition(";")[0]


async def _bearer(token: str) -> Principal | None:
    subject = token.removeprefix("token-of-")
    if subject == token or not subject.isidentifier():
        return None
    return Principal(subject=subject, display=subject, scheme="bearer", is_browser=False)


def basic(user: str = "ops", password: str | None = None) -> dict[str, str]:
    """The header of a user with his password."""
    credentials = f"{user}:{PASSWORDS.get(user, '') if password is None else password}"
    return {"authorization": "Basic " + base64.b64encode(credentials.encode()).decode()}


def bearer(subject: str = "robot") -> dict[str, str]:
    """The header of a machine client."""
    return {"authorization": f"Bearer token-of-{subject}"}


class Client:
    """Asks an application, one request after the other.

    Args:
        app: that answers.
        headers: with every request.
        scheme: ``https``, or ``http`` as from this machine itself.
        source: the address it comes from.
    """

    def __init__(
        self,
        app: ASGIApp,
        headers: Mapping[str, str] = {},
        *,
        scheme: str = "https",
        host: str = "ops.example.com",
        source: str = "192.0.2.7",
    ) -> None:
        self._app = app
        self.headers = dict(headers)
        self._base = f"{scheme}://{host}"
        self._source = source

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request."""
        return asyncio.run(self.ask_async(method, path, **options))

    async def ask_async(self, method: str, path: str, **options: Any) -> httpx.Response:
        """`ask` on an event loop."""
        headers = {**self.headers, **options.pop("headers", {})}
        transport = httpx.ASGITransport(self._app, client=(self._source, 1234))
        async with httpx.AsyncClient(transport=transport, base_url=self._base) as client:
            return await client.request(method, path, headers=headers, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """A POST of JSON."""
        text = body if isinstance(body, bytes) else msgspec.json.encode(body)
        headers = {"content-type": "application/json", **options.pop("headers", {})}
        return self.ask("POST", path, content=text, headers=headers, **options)


def change(**more: Any) -> dict[str, Any]:
    """The body of a change with an id of its own."""
    return {"commandId": str(uuid.uuid4()), **more}


def error_of(response: httpx.Response) -> dict[str, Any]:
    """The error of a refusal; every one has this form."""
    body = response.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert {"code", "message", "retryable", "hint"} <= set(error)
    assert error["hint"].endswith(".")
    return error
