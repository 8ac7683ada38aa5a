"""`Management`: one application's desk with the host's rules: who may sign in and how, and what each may do.

It is the object that a host builds once and hands to the JSON API and to the dashboard. Both schemes and grants are
required; without them there is no way in at all.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from starlette.requests import Request

from runwick.contracts.ambient import Clock
from runwick.contracts.controls import ManagementActor
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.contracts.names import name_problem
from runwick.management.desk import Desk
from runwick.management.permissions import Caller, Grant
from runwick.management.web import sealing
from runwick.management.web.antiforgery import Antiforgery, origin_of
from runwick.management.web.limits import CallerLimits, Gate, ManagementLimits
from runwick.management.web.principals import Principal, Scheme
from runwick.management.web.refusals import Refusal
from runwick.management.web.sealing import Seal
from runwick.management.web.sources import is_encrypted, is_loopback
from runwick.runtime.ambient import SystemClock

Grants = Callable[[Principal], Sequence[Grant] | Awaitable[Sequence[Grant]]]
"""What somebody may do; asked at every request."""
Actor = Callable[[Principal], ManagementActor]

CURSOR_LIFETIME_S: Final = 3_600
EVENT_CURSOR_LIFETIME_S: Final = 30 * 86_400
"""Whoever follows events keeps the place where he stood, over a night or a release."""


def actor_of(principal: Principal) -> ManagementActor:
    """How the audit trail names him, unless the host says otherwise."""
    return ManagementActor(principal.subject, principal.display, principal.scheme)


class Management:
    """One application's management on the web.

    Args:
        desk: does what is asked; ``rw.desk``.
        schemes: how callers prove who they are, tried in this order.
        grants: what a caller may do: a plain or async function of the principal, asked at every request.
        actor: how the audit trail names a caller; by default subject, display name and scheme of the principal.
        limits: how much callers may ask for, and this process does at once.
        signing_key: at least 32 bytes, the same in every process behind one address: then cursors, antiforgery tokens
            and sessions of one are good in the others. None: a random one, good in this process and those it forks.
        origins: addresses (``https://ops.example.com``) from which pages may post, beside the one that was asked: for
            proxies that rewrite the host.
        clock: limits and lifetimes count by it.

    Raises:
        ConfigurationError: schemes or grants are missing, two schemes share a name, an origin is none, or the key is
            too short (code ``invalid_management``).
    """

    def __init__(
        self,
        desk: Desk,
        *,
        schemes: Sequence[Scheme],
        grants: Grants,
        actor: Actor = actor_of,
        limits: ManagementLimits | None = None,
        signing_key: bytes | None = None,
        origins: Sequence[str] = (),
        clock: Clock | None = None,
    ) -> None:
        if problems := [*_problems(schemes, grants, signing_key, origins)]:
            raise ConfigurationError(problems)
        key = sealing.signing_key(signing_key)
        self.desk = desk
        self.schemes = tuple(schemes)
        self.clock = clock or SystemClock()
        self.limits = limits or ManagementLimits()
        self.callers = CallerLimits(self.limits, self.clock)
        self.gate = Gate(self.limits)
        self.antiforgery = Antiforgery(key, self.clock, origins)
        self._cursors = Seal(key, "cursor", self.clock, CURSOR_LIFETIME_S)
        self._grants = grants
        self._actor = actor

    async def authenticate(self, request: Request) -> Principal:
        """Who asks: the first that a scheme proves.

        Raises:
            Refusal: none does (401, code ``unauthenticated``), or a scheme cannot tell now.
        """
        for scheme in self.schemes:
            if (principal := await scheme.authenticate(request)) is not None:
                return principal
        raise Refusal(401, "unauthenticated", self._unproved(request), headers=self._challenges(request))

    async def caller(self, principal: Principal) -> Caller:
        """What he may do now, and how the audit trail names him."""
        grants = self._grants(principal)
        if inspect.isawaitable(grants):
            grants = await grants
        return Caller.of(self._actor(principal), grants)

    def close_cursor(self, raw: str | None, bound: bytes, lifetime_s: int) -> str | None:
        """A desk's cursor as it may leave: good where `bound` is the same, for so long. None for None."""
        return None if raw is None else self._cursors.close(raw.encode(), bound, lifetime_s=lifetime_s)

    def open_cursor(self, given: str | None, bound: bytes) -> str | None:
        """The desk's cursor of what came back; None for None.

        Raises:
            Refusal: it is none of ours, another's, or too old (400, code ``invalid_cursor``).
        """
        if given is None:
            return None
        raw = self._cursors.open(given, bound)
        if raw is None:
            message = "the cursor is too old, or of another list, filter or caller; read from the beginning"
            raise Refusal(400, "invalid_cursor", message)
        return raw.decode()

    def _unproved(self, request: Request) -> str:
        """Why nobody is proved, by what kind of credentials came; which part of them is wrong stays untold."""
        kind = request.headers.get("authorization", "").partition(" ")[0].lower()
        if kind == "basic" and any(scheme.kind == "basic" for scheme in self.schemes):
            return "user or password is wrong"
        return "these credentials are not valid here" if kind else "sign in first"

    def _challenges(self, request: Request) -> dict[str, str]:
        """What a client may answer with; over plain HTTP no browser is asked for a password."""
        safe = is_encrypted(request) or is_loopback(request)
        said = [getattr(scheme, "challenge", "") for scheme in self.schemes if safe or scheme.kind != "basic"]
        return {"WWW-Authenticate": ", ".join(filter(None, said))} if any(said) else {}


def _problems(
    schemes: Sequence[Scheme], grants: object, signing_key: bytes | None, origins: Sequence[str]
) -> Iterator[Problem]:
    if not schemes:
        yield _problem("schemes", "give at least one; there is no anonymous mode")
    names = [scheme.name for scheme in schemes]
    if len(set(names)) < len(names):
        yield _problem("schemes", f"two share a name: {', '.join(names)}; the audit trail tells them apart by it")
    for name in names:
        if (why := name_problem(name)) is not None:
            yield _problem("schemes", f"{name!r} is no name: {why}")
    if not callable(grants):
        yield _problem("grants", "give a function from a principal to what he may do")
    # One that is none would stand for every other that is none, such as that of a page in a sandbox.
    if isinstance(origins, str) or not all(map(origin_of, origins)):
        yield _problem("origins", f"these are {origins!r}; give a list of origins such as https://ops.example.com")
    if (problem := sealing.key_problem(signing_key)) is not None:
        yield problem


def _problem(setting: str, message: str) -> Problem:
    return Problem("invalid_management", setting, message)
