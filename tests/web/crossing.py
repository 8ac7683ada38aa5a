"""What the matrices of the API and of the pages cross: reaches of a grant, ways to sign in, antiforgery tokens and
origins."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from starlette.types import ASGIApp

from runwick.management.permissions import Grant, Permission
from tests.web.ground import Client, Site, basic, bearer

TENANTS: Final = {"own": "north", "other": "south"}
"""Whose the jobs are that are in the queue of this name."""


class Reach(NamedTuple):
    """How far a grant goes, over the jobs of the queue ``own``, which are of one tenant, and those of the queue
    ``other``, which are of another."""

    narrowed: Mapping[str, Any]
    """The grant's queues and tenants."""
    covers: frozenset[str]
    """The queues whose jobs are within it."""


def _reach(queue: str | None, tenant: str | None, *covers: str) -> Reach:
    narrowed = {"queues": queue, "tenants": tenant}
    return Reach({name: frozenset({only}) for name, only in narrowed.items() if only is not None}, frozenset(covers))


REACHES: Final = {
    "all": _reach(None, None, "own", "other"),
    "own queue": _reach("own", None, "own"),
    "other queue": _reach("other", None, "other"),
    "own tenant": _reach(None, TENANTS["own"], "own"),
    "other tenant": _reach(None, TENANTS["other"], "other"),
    "own queue and tenant": _reach("own", TENANTS["own"], "own"),
    "own queue, other tenant": _reach("own", TENANTS["other"]),
}


def grants_of(permission: Permission, reach: str) -> list[Grant]:
    """The permission alone; nothing where it cannot be narrowed like that."""
    try:
        return [Grant(permission, **REACHES[reach].narrowed)]
    except ValueError:
        return []


PROOFS: Final = ("none", "bad cookie", "bad basic", "bad bearer", "cookie", "basic", "bearer")
TOKENS: Final = ("none", "bad", "another's", "good")
ORIGINS: Final = {
    "none": {},
    "ours": {"origin": "https://ops.example.com", "sec-fetch-site": "same-origin"},
    "foreign": {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
    "opaque": {"origin": "null"},
    "told by the browser alone": {"sec-fetch-site": "cross-site"},
}


def proof(site: Site, name: str) -> dict[str, str]:
    """The headers of one who signs in like that."""
    headers: dict[str, dict[str, str]] = {
        "none": {},
        "bad cookie": {"cookie": site.cookie()[:-2]},
        "bad basic": basic(password="wrong"),
        "bad bearer": {"authorization": "Bearer nobody's"},
        "cookie": {"cookie": site.cookie()},
        "basic": basic(),
        "bearer": bearer(),
    }
    return headers[name]


def token(app: ASGIApp, name: str, headers: dict[str, str]) -> str | None:
    """The antiforgery token that is sent, as the API at `app` gives them."""
    if name in ("none", "bad"):
        return None if name == "none" else "bad"
    answer = Client(app, headers if name == "good" else basic("other")).get("/v1/antiforgery").json()
    given: str = answer.get("token", "no token without signing in")
    return given


def answered(signed_in: str, given: str, origin: str, served: int, *, reads: bool = False) -> int:
    """The status of the answer to such a caller, who may do what he asks for."""
    if signed_in == "none" or signed_in.startswith("bad"):
        return 401
    is_meant = signed_in == "bearer" or (given == "good" and origin in ("none", "ours"))
    return served if reads or is_meant else 403
