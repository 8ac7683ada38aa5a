"""The pages of who did what and of how things are set, and the choice between light and dark."""

import re
from typing import Final

from starlette.responses import RedirectResponse, Response

from runwick.management.dashboard.asking import AuditQuery, ThemeForm
from runwick.management.dashboard.rendering import THEME_COOKIE, THEMES, Rendering, href
from runwick.management.permissions import Permission
from runwick.management.web.calls import Call
from runwick.management.web.routes import Access, Kind, Route
from runwick.management.web.sources import is_encrypted

_YEAR_S: Final = 365 * 86_400
_BELOW_MOUNT: Final = re.compile(r"/(?![/\\])[^\s\\]*\Z")
"""A path of this site: nothing that a browser takes for another one's address."""


class TrailPages:
    """Handlers of these pages.

    Args:
        rendering: makes the pages.
    """

    def __init__(self, rendering: Rendering) -> None:
        self._rendering = rendering

    def routes(self) -> list[Route]:
        """Their rows."""
        audit, settings = Permission.AUDIT_READ, Permission.SETTINGS_READ
        return [
            Route(
                method="GET", path="/audit", needs=audit, query=AuditQuery, handler=self.audit, summary="audit trail"
            ),
            Route(method="GET", path="/settings", needs=settings, handler=self.settings, summary="settings"),
            Route(
                method="POST",
                path="/theme",
                needs=Access.SIGNED_IN,
                kind=Kind.CHANGE,
                body=ThemeForm,
                handler=self.theme,
                summary="light or dark",
            ),
        ]

    async def audit(self, call: Call) -> Response:
        """The audit trail."""
        query: AuditQuery = call.query
        body = await call.desk.audit(call.caller, query.chosen, call.cursor_in(query.cursor))
        return self._rendering.page(
            call,
            "audit.html",
            body=body,
            chosen=query.kept,
            is_filtered=any(query.kept.values()),
            next_link=href(call.request, "/audit", **query.kept, cursor=call.cursor_out(body.cursor)),
        )

    async def settings(self, call: Call) -> Response:
        """How the application and its store are set."""
        return self._rendering.page(call, "settings.html", body=await call.desk.settings(call.caller))

    async def theme(self, call: Call) -> Response:
        """Keep the choice in a cookie, and go back to where the caller was."""
        form: ThemeForm = call.body
        back = form.back if _BELOW_MOUNT.match(form.back) else "/"
        response = RedirectResponse(f"{href(call.request)}{back}", 303)
        response.set_cookie(
            THEME_COOKIE,
            form.theme if form.theme in THEMES else "",
            max_age=_YEAR_S if form.theme in THEMES else 0,
            path=call.request.scope.get("root_path") or "/",
            secure=is_encrypted(call.request),
            httponly=True,
            samesite="strict",
        )
        return response
