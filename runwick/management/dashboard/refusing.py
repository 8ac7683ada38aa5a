"""Refusals as pages: what was not done, why, in words, and where to look again."""

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from runwick.contracts.codes import CODES
from runwick.management.dashboard.asking import Form
from runwick.management.dashboard.rendering import Rendering, href
from runwick.management.web.calls import Call
from runwick.management.web.refusals import Refusal

REFUSED: Final = {
    "not_found": "It is not there, or not for you to see. Nothing was done.",
    "stale_revision": "It has changed since the page was read, so nothing was done. Look again, then decide anew.",
    "stale_generation": "It was retried or rerun since the page was read, so nothing was done. Look again first.",
    "invalid_state": "It is not in a state in which this can be done (any more), so nothing was done.",
    "uniqueness_conflict": "Another job holds its active key by now, so nothing was done.",
}
"""What the answers to controls mean, by their code."""

_HEADINGS: Final = {
    401: "Please sign in",
    403: "Not for you",
    404: "Not found",
    409: "Nothing was done",
    429: "One moment",
    503: "Not now",
    504: "Nobody knows yet",
}
_EXPLANATIONS: Final = {
    401: "This page is for people who have signed in. Your session may have ended.",
    404: "There is no such page, or nothing there that you may see.",
    429: "You asked for more than is allowed within a minute. Wait a little, then try again.",
    504: "It may or may not have been done. Sending the same form again settles it: it is never done twice.",
}


def refusal_text(code: str | None) -> str:
    """A refused control in words."""
    if code in REFUSED:
        return REFUSED[code]
    row = None if code is None else CODES.get(code)
    return f"Nothing was done: {code}." if row is None else f"Nothing was done. {row.hint}"


def refused_page(rendering: Rendering, request: Request, refusal: Refusal, call: Call | None) -> Response:
    """The page for a refusal.

    Args:
        rendering: makes it.
        request: what was refused.
        refusal: why.
        call: what the request came to, as far as it came; then the page has its frame.
    """
    form = call.body if call is not None and isinstance(call.body, Form) else None
    values = {
        "heading": _HEADINGS.get(refusal.status, "That did not work"),
        "explanation": _explained(refusal),
        "code": refusal.code,
        "reference": refusal.incident,
        "ways": _ways(request, refusal, form),
        "again": _fields(form) if form is not None and refusal.status == 504 else None,
        "address": request.url.path,
        "retries": _may_pass(request, refusal),
    }
    if call is None:
        response = rendering.lone_page(request, "refused.html", status=refusal.status, **values)
    else:
        response = rendering.page(call, "refused.html", status=refusal.status, polls=False, **values)
    response.headers.update(refusal.headers)
    return response


def _explained(refusal: Refusal) -> str:
    if refusal.status == 409:
        return refusal_text(refusal.code)
    return _EXPLANATIONS.get(refusal.status) or f"{refusal.message[:1].upper()}{refusal.message[1:]}."


def _ways(request: Request, refusal: Refusal, form: Form | None) -> list[tuple[str, str]]:
    """Where to go on."""
    if form is not None:
        return [("Look again", href(request, *form.seen_at))]
    if refusal.status == 401 or _may_pass(request, refusal):
        asked = f"?{request.url.query}" if request.url.query else ""
        return [("Try again", f"{request.url.path}{asked}")]
    return [("Overview", href(request, "/"))]


def _may_pass(request: Request, refusal: Refusal) -> bool:
    """Whether reading the same page again is all that it takes."""
    return refusal.status == 503 and request.method == "GET"


def _fields(form: Form) -> list[tuple[str, object]]:
    """The form as it was sent, so that it can be sent again under the same command id."""
    fields = []
    for name, value in msgspec.to_builtins(form).items():
        values = value if isinstance(value, list | tuple) else [value]
        fields += [(name, each) for each in values if each is not None]
    return fields
