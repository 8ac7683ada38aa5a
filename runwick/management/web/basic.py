"""Sign-in by user and password with every request, for small setups. There is no default password, nothing goes over
plain HTTP but from this very machine, and guessing ends after a few tries.

It tells nothing about which users exist: an unknown one, a wrong password and a malformed header look the same, and
tries are counted alike.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
import unicodedata
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import Request

from runwick.contracts.ambient import Clock
from runwick.management.web.counting import RollingCounts
from runwick.management.web.journal import sign_in_failed
from runwick.management.web.limits import rate_limited
from runwick.management.web.principals import Principal, SchemeKind, is_subject
from runwick.management.web.refusals import Refusal
from runwick.management.web.sources import is_encrypted, is_loopback, source_of
from runwick.runtime.ambient import SystemClock

Verify = Callable[[str, str], Awaitable[bool]]
"""Whether the password is the user's; its time should not depend on either. `passwords` makes a good one."""

FAILURES_MAX: Final = 10
FAILURES_WINDOW_S: Final = 60
_PASSED_OVER: Final = "CMZ"
"""Kinds of characters: controls and what is not shown, marks such as accents, blanks."""


class BasicScheme:
    """HTTP Basic authentication (RFC 7617). It counts as a browser's: changes need an antiforgery token.

    Args:
        verify: checks a user and a password.
        name: how the audit trail calls it.
        clock: counts failures.
    """

    kind: SchemeKind = "basic"
    challenge: Final = 'Basic realm="Runwick", charset="UTF-8"'

    def __init__(self, verify: Verify, *, name: str = "basic", clock: Clock | None = None) -> None:
        self.name = name
        self._verify = verify
        self._failures = RollingCounts(FAILURES_MAX, FAILURES_WINDOW_S, clock or SystemClock())
        self._turns: weakref.WeakValueDictionary[tuple[str, str], asyncio.Lock] = weakref.WeakValueDictionary()

    async def authenticate(self, request: Request) -> Principal | None:
        """The user of the header, if there is one and his password is right.

        Raises:
            Refusal: over plain HTTP (403, code ``https_required``), or after `FAILURES_MAX` failures of this source
                with this user within a minute (429, code ``rate_limited``); nothing was checked.
        """
        kind, _, credentials = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic":
            return None
        if not is_encrypted(request) and not is_loopback(request):
            raise Refusal(403, "https_required", "passwords go over HTTPS only; this came over plain HTTP")
        user, password = _read(credentials) or ("", "")
        tried = (source_of(request), _normal(user))
        # One after another, so that tries side by side are neither free nor counted against a user who is right.
        async with self._turns.setdefault(tried, asyncio.Lock()):
            if (wait_s := self._failures.take(tried)) is not None:
                raise rate_limited("too many failed sign-ins", wait_s)
            if not await self._verify(user, password) or not is_subject(user):
                sign_in_failed(request, self.name)
                return None
            self._failures.give_back(tried)
        return Principal(subject=user, display=user, scheme=self.name, is_browser=True)


def passwords(of: Mapping[str, str]) -> Verify:
    """A check against a few fixed passwords, such as the environment holds them. Its time depends on neither user nor
    password.

    Args:
        of: each user's password.

    Raises:
        ValueError: there is none, or one is empty.
    """
    if not of or not all(of.values()):
        raise ValueError("give every user a password that is not empty")
    key = os.urandom(32)

    def digest(user: str, password: str) -> bytes:
        text = f"{len(user)}:{user}{password}".encode("utf-8", "surrogatepass")
        return hmac.digest(key, hashlib.sha256(text).digest(), "sha256")

    known = [digest(user, password) for user, password in of.items()]

    async def verify(user: str, password: str) -> bool:
        given = digest(user, password)
        matches = [hmac.compare_digest(given, each) for each in known]  # all are compared, always
        return any(matches)

    return verify


def _read(credentials: str) -> tuple[str, str] | None:
    try:
        text = base64.b64decode(credentials.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    user, colon, password = text.partition(":")
    return (user, password) if colon else None


def _normal(user: str) -> str:
    """The user as failures are counted: neither case nor blanks nor look-alikes nor what nobody sees give new tries,
    for whatever checks the password may pass over them."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", user).casefold())
    return "".join(each for each in plain if unicodedata.category(each)[0] not in _PASSED_OVER)[:256]
