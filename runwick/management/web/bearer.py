"""Sign-in by a bearer token with every request, for machine clients. The host checks the token; no browser sends one by
itself, so changes need no antiforgery token."""

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request

from runwick.management.web.journal import sign_in_failed
from runwick.management.web.principals import Principal, SchemeKind

Verify = Callable[[str], Awaitable[Principal | None]]
"""Whose token it is; None if it is nobody's, or not any more."""


class BearerScheme:
    """Bearer tokens in the header ``Authorization`` (RFC 6750), nowhere else.

    Args:
        verify: checks a token.
        name: how the audit trail calls it.
    """

    kind: SchemeKind = "bearer"
    challenge: Final = 'Bearer realm="Runwick"'

    def __init__(self, verify: Verify, *, name: str = "bearer") -> None:
        self.name = name
        self._verify = verify

    async def authenticate(self, request: Request) -> Principal | None:
        """Whose token the header holds, if it is good."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            return None
        principal = await self._verify(token.strip())
        if principal is None:
            sign_in_failed(request, self.name)
        return principal
