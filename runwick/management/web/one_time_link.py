"""A link that signs in whoever opens it first, on this very machine: for ``runwick web`` without a sign-in of its own.

issue() ─▶ token in a link ─▶ opened once, within 10 minutes, over loopback ─▶ session with every permission
"""

import hmac
import os
import secrets
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from runwick.contracts.ambient import Clock
from runwick.management.permissions import EVERYTHING, Grant
from runwick.management.web.journal import sign_in_failed
from runwick.management.web.principals import Principal
from runwick.management.web.refusals import Refusal
from runwick.management.web.sessions import SessionScheme
from runwick.management.web.sources import is_loopback
from runwick.runtime.ambient import SystemClock

PATH: Final = "/sign-in"
LIFETIME_S: Final = 600


class OneTimeLink:
    """Signs in the operating system's user who started this process.

    Its parts for `Management`: ``schemes=[link.scheme], grants=link.grants``; its door is mounted by `site`.

    Args:
        user: his name, for the audit trail.
        clock: its steady seconds count.
    """

    def __init__(self, user: str, *, clock: Clock | None = None) -> None:
        self._user = user
        self._clock = clock or SystemClock()
        self._token: str | None = None
        self._until_s = 0.0
        # A cookie's name of its own: browsers do not tell ports apart, and two windows may be open.
        self.scheme = SessionScheme(name="one_time_link", cookie=f"runwick_{os.urandom(4).hex()}", clock=self._clock)

    def issue(self) -> str:
        """The path and query of a new link, below the site's address; the one before is good no longer."""
        self._token = secrets.token_urlsafe(32)
        self._until_s = self._clock.steady_s() + LIFETIME_S
        return f"{PATH}?token={quote(self._token)}"

    def grants(self, principal: Principal) -> tuple[Grant, ...]:
        """Everything, for whom this link signed in; nothing for others."""
        return EVERYTHING if principal.scheme == self.scheme.name else ()

    async def open(self, request: Request) -> Response:
        """The door: a session for a good token, which is used up by that; then on to the site.

        Raises:
            Refusal: the token is not good any more, or never was, or this is no request on this machine (403, code
                ``sign_in_failed``).
        """
        given, token = request.query_params.get("token", ""), self._token or ""
        is_good = hmac.compare_digest(given.encode(), token.encode()) and self._clock.steady_s() < self._until_s
        if not token or not is_good or not is_loopback(request):
            sign_in_failed(request, self.scheme.name)
            message = "this link is used up or too old, or is opened from elsewhere; runwick web prints a new one"
            raise Refusal(403, "sign_in_failed", message)
        self._token = None
        response = RedirectResponse(f"{request.scope.get('root_path', '')}/", 303)
        self.scheme.sign_in(request, response, self._user)
        return response
