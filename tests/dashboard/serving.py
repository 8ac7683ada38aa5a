"""The pages on an address of this machine, for callers who say by a cookie who they are."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from starlette.types import ASGIApp

from runwick.management.permissions import ADMINISTRATOR, EVERYTHING, OPERATOR, VIEWER, Grant, Permission
from runwick.management.web import Principal
from runwick.management.web.principals import SchemeKind
from tests.dashboard.darkroom import MARKER

MOUNT = "/ops"
COOKIE = "who"
GRANTS: Mapping[str, Sequence[Grant]] = {
    "viewer": VIEWER,
    "operator": OPERATOR,
    "administrator": ADMINISTRATOR,
    "everything": EVERYTHING,
    "archivist": (
        Grant(Permission.JOBS_READ, frozenset({"archive"})),
        Grant(Permission.QUEUES_READ, frozenset({"archive"})),
        Grant(Permission.JOBS_CANCEL, frozenset({"archive"})),
    ),
    "nobody": (),
}


class CookieScheme:
    """Believes a cookie: the sign-in of a host that these tests stand for."""

    name = "cookie"
    kind: SchemeKind = "session"

    async def authenticate(self, request: Request) -> Principal | None:
        who = request.cookies.get(COOKIE, "")
        if who not in GRANTS:
            return None
        display = f"{who} {MARKER[:30]}" if who == "everything" else who
        return Principal(subject=who, display=display, scheme=self.name, is_browser=True)


def granted(principal: Principal) -> Sequence[Grant]:
    return GRANTS[principal.subject]


@contextlib.contextmanager
def served(pages: ASGIApp) -> Iterator[str]:
    """Serve them below `MOUNT`; answers that address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        host = Starlette(routes=[Mount(MOUNT, pages)])
        config = uvicorn.Config(host, http="h11", log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            until_s = time.monotonic() + 10
            while not server.started:
                assert thread.is_alive(), "the server ended"
                assert time.monotonic() < until_s, "the server did not start"
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}{MOUNT}"
        finally:
            server.should_exit = True
            thread.join(10)
