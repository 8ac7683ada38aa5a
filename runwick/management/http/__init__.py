"""The JSON API: the desk's actions under ``/v1/…``, as an ASGI application that mounts anywhere."""

from typing import TYPE_CHECKING

from runwick.contracts.errors import ConfigurationError, Problem
from runwick.management import web  # before what needs Starlette, for it says that an extra is missing
from runwick.management.http.face import JsonFace
from runwick.management.http.table import TABLE
from runwick.management.web.serving import serve

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["api"]


def api(management: web.Management, *, for_machine_clients: bool = False) -> "ASGIApp":
    """The API as an application, to be mounted under a prefix or served alone.

    Args:
        management: who may ask, and the desk that does it.
        for_machine_clients: nobody else comes here: every scheme must be a bearer one, so that no browser can be made
            to post by a foreign page, and no antiforgery token is needed.

    Raises:
        ConfigurationError: a scheme of a browser among those for machine clients (code ``scheme_not_allowed``).
    """
    if for_machine_clients and (
        problems := [
            Problem("scheme_not_allowed", scheme.name, f"{scheme.kind} schemes are not for machine clients; use bearer")
            for scheme in management.schemes
            if scheme.kind != "bearer"
        ]
    ):
        raise ConfigurationError(problems)
    return serve(TABLE, management, JsonFace())
