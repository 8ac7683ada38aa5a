"""Sign-in by a session in a signed cookie, for hosts without one of their own.

    the host proves somebody ─▶ sign_in(request, response, …) ─▶ cookie ─▶ authenticate(request) ─▶ principal

The cookie is sealed: nobody reads or changes it. Every sign-in makes a new session with a new id. What was signed out
stays out in this process; a process that shares the key believes the cookie until it is too old.
"""

import os
from collections import OrderedDict
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from runwick.contracts.ambient import Clock
from runwick.management.web import sealing
from runwick.management.web.journal import sign_in_failed
from runwick.management.web.principals import Principal, SchemeKind
from runwick.management.web.sealing import Seal
from runwick.management.web.sources import is_encrypted
from runwick.runtime.ambient import SystemClock

LIFETIME_S: Final = 12 * 3_600
_SIGNED_OUT_MAX: Final = 10_000


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """What the cookie holds."""

    session: str
    subject: str
    display: str
    claims: dict[str, Any]


class SessionScheme:
    """Sessions of browsers, 12 hours each.

    Args:
        signing_key: at least 32 bytes, the same in all processes behind one address; None: a random one.
        name: how the audit trail calls it.
        cookie: the cookie's name.
        clock: says when a session is over.

    Raises:
        ConfigurationError: the key is too short (code ``invalid_management``).
    """

    kind: SchemeKind = "session"

    def __init__(
        self,
        signing_key: bytes | None = None,
        *,
        name: str = "session",
        cookie: str = "runwick_session",
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self._cookie = cookie
        self._seal = Seal(sealing.signing_key(signing_key), "session", clock or SystemClock(), LIFETIME_S)
        self._signed_out: OrderedDict[str, None] = OrderedDict()

    def sign_in(
        self, request: Request, response: Response, subject: str, display: str = "", **claims: Any
    ) -> Principal:
        """Begin a session of somebody whom the host has proven; the response carries its cookie.

        Args:
            request: his; the cookie is for where its application is mounted.
            response: what he is answered.
            subject: his stable name.
            display: for people; by default the subject.
            claims: what the host's grants will ask of him; JSON.

        Raises:
            ValueError: subject or display are none.
        """
        kept = _Kept(os.urandom(16).hex(), subject, display or subject, claims)
        principal = self._principal(kept)
        self._set(request, response, self._seal.close(msgspec.json.encode(kept), self._bound), LIFETIME_S)
        return principal

    def sign_out(self, request: Request, response: Response) -> None:
        """End the session of this request; the response takes its cookie away."""
        if (kept := self._read(request)) is not None:
            self._signed_out[kept.session] = None
            if len(self._signed_out) > _SIGNED_OUT_MAX:
                self._signed_out.popitem(last=False)
        self._set(request, response, "", 0)

    async def authenticate(self, request: Request) -> Principal | None:
        """Whose session the cookie holds, if it is good and not over."""
        if self._cookie not in request.cookies:
            return None
        kept = self._read(request)
        if kept is None or kept.session in self._signed_out:
            sign_in_failed(request, self.name)
            return None
        return self._principal(kept)

    @property
    def _bound(self) -> bytes:
        return f"{self.name} {self._cookie}".encode()

    def _read(self, request: Request) -> _Kept | None:
        inside = self._seal.open(request.cookies.get(self._cookie, ""), self._bound)
        try:
            return None if inside is None else msgspec.json.decode(inside, type=_Kept)
        except msgspec.DecodeError:  # of another release with the same key
            return None

    def _principal(self, kept: _Kept) -> Principal:
        return Principal(
            subject=kept.subject,
            display=kept.display,
            scheme=self.name,
            is_browser=True,
            session=kept.session,
            claims=kept.claims,
        )

    def _set(self, request: Request, response: Response, value: str, max_age_s: int) -> None:
        response.set_cookie(
            self._cookie,
            value,
            max_age=max_age_s,
            path=request.scope.get("root_path") or "/",
            secure=is_encrypted(request),
            httponly=True,
            samesite="strict",
        )
