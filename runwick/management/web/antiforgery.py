"""That a signed-in browser means what it posts: a token that only our own pages can have read, and no foreign page as
the origin.

The token is bound to the caller, the scheme and the session, so that another user's or another session's is useless.
There is no cookie beside it and nothing is stored. Since no answer of ours allows other origins to read it, a foreign
page that fetches one gets nothing.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from runwick.contracts.ambient import Clock
from runwick.management.web.principals import Principal
from runwick.management.web.refusals import Refusal
from runwick.management.web.sealing import Seal
from runwick.management.web.sources import is_encrypted

HEADER: Final = "X-Runwick-Antiforgery"
FIELD: Final = "antiforgery"
"""Of a form, where there is no header."""
LIFETIME_S: Final = 12 * 3_600

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Antiforgery:
    """Gives tokens and checks them.

    Args:
        key: as `Seal` takes it.
        clock: says when a token is too old.
        origins: from where may be posted, beside the address that was asked.
    """

    def __init__(self, key: bytes, clock: Clock, origins: Sequence[str] = ()) -> None:
        self._seal = Seal(key, "antiforgery", clock, LIFETIME_S)
        self._origins = frozenset(map(origin_of, origins))

    def token(self, principal: Principal) -> str:
        """What his next posts carry, in the header or a form's field; good for 12 hours."""
        return self._seal.close(b"", _bound(principal))

    def check(self, request: Request, principal: Principal, token: str | None) -> None:
        """Go on if it is meant.

        Raises:
            Refusal: the token is missing, another's or too old, or a foreign page asks (403, code
                ``antiforgery_failed``).
        """
        if not self._comes_from_us(request):
            raise Refusal(403, "antiforgery_failed", "a page of another origin may not ask for this")
        if token is None or self._seal.open(token, _bound(principal)) is None:
            message = f"this needs a token of yours in the header {HEADER}; GET …/v1/antiforgery gives one"
            raise Refusal(403, "antiforgery_failed", message)

    def _comes_from_us(self, request: Request) -> bool:
        """What a browser says of the page that asks; a client that says nothing is no browser with pages."""
        site, origins = request.headers.get("sec-fetch-site"), request.headers.getlist("origin")
        named = [origin_of(origin) for origin in origins]
        if any(origin in self._origins for origin in named):
            return len(named) == 1
        if site is not None and site not in ("same-origin", "none"):
            return False
        return all(origin and origin in _own(request) for origin in named)


def _own(request: Request) -> tuple[str, ...]:
    """The origins that the asked address can have: behind a proxy that ends TLS the request itself came without it."""
    host = request.headers.get("host", "")
    plain = () if is_encrypted(request) else (origin_of(f"http://{host}"),)
    return (origin_of(f"https://{host}"), *plain)


def origin_of(text: str) -> str:
    """An origin in its one spelling; empty for what is none."""
    try:
        parts = urlsplit(text)
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        return ""
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"


def _bound(principal: Principal) -> bytes:
    return f"{principal.key}\n{principal.session}".encode()
