"""The headers that every answer has: nothing is kept, framed, sniffed or told to other sites, and no other origin may
read it, since none of the headers that allow it is ever sent."""

from typing import Final

from starlette.responses import Response

API_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
"""The content security policy of answers that are no page."""

_ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def secure(response: Response, policy: str) -> Response:
    """The response with these headers. One that says itself how long it may be kept keeps saying so.

    Args:
        response: an answer, before it is sent.
        policy: its content security policy.
    """
    for name, value in _ALWAYS.items():
        response.headers[name] = value
    response.headers["Content-Security-Policy"] = policy
    response.headers.setdefault("Cache-Control", "no-store")
    return response
