"""How a page is made of a template: escaping on, undefined names refused, foreign text only through the filters of
`runwick.management.dashboard.texts`."""

import uuid
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from runwick.management.bodies import TrendBody
from runwick.management.dashboard import plots, texts
from runwick.management.dashboard.assets import Assets
from runwick.management.dashboard.places import places
from runwick.management.permissions import Allowed, Permission
from runwick.management.web.calls import Call
from runwick.management.web.routes import Access

THEME_COOKIE: Final = "runwick_theme"
THEMES: Final = ("light", "dark")

_PHASES: Final = {
    "idle": "idle",
    "starting": "starting",
    "leaving": "leaving",
    "decode": "reading the payload",
    "provide": "opening what it needs",
    "handle": "in the handler",
    "encode": "writing the result",
    "close": "cleaning up",
    "stopping": "being stopped",
}
_QUIET_PHASES: Final = frozenset({"idle"})
_LEAVING_PHASES: Final = frozenset({"starting", "leaving", "stopping"})


def href(request: Request, *parts: str, **query: object) -> str:
    """An address of ours below wherever the application is mounted.

    Args:
        request: tells where that is.
        parts: a piece of path, then by turns a value, which is quoted, and the next piece.
        query: parameters; None and empty ones are left out.
    """
    path = "".join(part if at % 2 == 0 else quote(part, safe="") for at, part in enumerate(parts))
    kept = [(name, value) for name, value in query.items() if value not in (None, "", ())]
    behind = f"?{urlencode(kept, doseq=True)}" if kept else ""
    return f"{request.scope.get('root_path', '')}{path}{behind}"


class Rendering:
    """Renders the pages of one mount.

    Args:
        title: of the mount.
        application: whose pages they are; told to whoever has signed in.
        sign_out_path: as `dashboard` takes it.
    """

    def __init__(self, title: str, application: str, sign_out_path: str | None) -> None:
        self.assets = Assets()
        environment = Environment(
            loader=PackageLoader("runwick.management.dashboard"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.filters |= {
            "plain": _plain,
            "block": texts.block,
            "words": texts.words,
            "elapsed": texts.elapsed,
            "size": texts.size,
            "count": texts.count,
            "capped": texts.capped,
            "share": texts.share,
            "moment": texts.moment,
            "clock": texts.clock,
            "ago": texts.ago,
            "trend": plots.trend,
        }
        environment.globals |= {
            "title": title,
            "sign_out_path": sign_out_path,
            "figures": plots.FIGURES,
            "strip": plots.strip,
            "waited": lambda start, end: texts.elapsed(max(texts.between(start, end), 0)),
            "span": _span,
            "phase": lambda phase: _PHASES.get(phase, texts.words(phase)),
            "phase_mood": _phase_mood,
            "new_command": lambda: str(uuid.uuid4()),
        }
        self._environment = environment
        self._application = application

    def page(self, call: Call, template: str, *, status: int = 200, polls: bool = True, **values: Any) -> HTMLResponse:
        """A page for one call; `values` are what its template names.

        Args:
            call: whose.
            template: its file's name.
            status: of HTTP.
            polls: the page may be read again and again; not one that answers a form.
        """
        frame = {
            "application": self._application if call.route.needs is not Access.OPEN else "",
            "who": call.principal.display,
            "token": call.antiforgery,
            "polls": polls,
        }
        return self._rendered(call.request, call.caller.allowed, template, status, frame | values)

    def lone_page(self, request: Request, template: str, *, status: int, **values: Any) -> HTMLResponse:
        """A page for somebody who is not known, or not to be trusted with forms."""
        frame = {"application": "", "who": "", "token": "", "polls": False}
        return self._rendered(request, Allowed(()), template, status, frame | values)

    def _rendered(
        self, request: Request, allowed: Allowed, template: str, status: int, values: dict[str, Any]
    ) -> HTMLResponse:
        theme = request.cookies.get(THEME_COOKIE, "")
        frame = {
            "theme": theme if theme in THEMES else "",
            "here": _here(request),
            "places": places(allowed, below_mount(request)),
            "href": _linking(request),
            "asset": lambda name: href(request, self.assets.path(name)),
            "can": lambda permission: allowed.has(Permission(permission)),
        }
        return HTMLResponse(self._environment.get_template(template).render(frame | values), status)


def below_mount(request: Request) -> str:
    """The path that was asked for, below wherever the application is mounted."""
    return request.url.path.removeprefix(request.scope.get("root_path", "")) or "/"


def _here(request: Request) -> str:
    """The page below the mount, with what chooses it; what answers a form is none that can be come back to."""
    if request.method != "GET":
        return "/"
    behind = f"?{request.url.query}" if request.url.query else ""
    return f"{quote(below_mount(request))}{behind}"


def _linking(request: Request) -> Callable[..., str]:
    return lambda *parts, **query: href(request, *parts, **query)


def _plain(value: object) -> str:
    return "" if value is None else texts.line(value)


def _span(trend: TrendBody) -> str:
    """How long a time a trend covers, in words."""
    return texts.elapsed(trend.step_ms * len(trend.values) * 1_000)


def _phase_mood(phase: str) -> str:
    """The class of an executor's phase; none for an idle one."""
    if phase in _QUIET_PHASES:
        return ""
    return "is-warn" if phase in _LEAVING_PHASES else "is-live"
