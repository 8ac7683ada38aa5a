"""One call: a request whose caller is known and allowed, read and checked, as a route's handler gets it."""

from typing import Any

import msgspec
from starlette.requests import Request

from runwick.management.desk import Desk
from runwick.management.permissions import Caller, Permission
from runwick.management.web.management import CURSOR_LIFETIME_S, Management
from runwick.management.web.principals import Principal
from runwick.management.web.routes import Route

_PAGING = ("cursor", "after", "limit")
"""Members of a query that say which page, and not of what."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler gets."""

    request: Request
    management: Management
    route: Route
    principal: Principal
    caller: Caller
    query: Any = None
    """Of the route's `query` type; None until it is read, which is before the handler."""
    body: Any = None
    """Of the route's `body` type; None where it has none, or until it is read."""

    @property
    def desk(self) -> Desk:
        """What does it."""
        return self.management.desk

    @property
    def antiforgery(self) -> str:
        """A token for what he posts next."""
        return self.management.antiforgery.token(self.principal)

    def path(self, name: str) -> str:
        """The value of a parameter of the path."""
        value: str = self.request.path_params[name]
        return value

    def may(self, permission: Permission) -> bool:
        """Whether he has it for anything: what is shown of buttons and pages. It guards nothing."""
        return self.caller.allowed.has(permission)

    def cursor_out(self, raw: str | None, lifetime_s: int = CURSOR_LIFETIME_S) -> str | None:
        """A desk's cursor as it may leave: good for this caller, this route and this filter, for so long."""
        return self.management.close_cursor(raw, self._bound, lifetime_s)

    def cursor_in(self, given: str | None) -> str | None:
        """The desk's cursor of what came back.

        Raises:
            Refusal: it is none of ours, another caller's, of another list, or too old (code ``invalid_cursor``).
        """
        return self.management.open_cursor(given, self._bound)

    @property
    def _bound(self) -> bytes:
        asked = msgspec.to_builtins(self.query)
        chosen = {name: value for name, value in asked.items() if name not in _PAGING}
        return msgspec.json.encode([self.principal.key, self.route.path, chosen], order="deterministic")
