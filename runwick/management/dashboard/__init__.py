"""The operator's window in a browser: pages over the same desk as the JSON API, with the same permissions and
audit trail.

    table of pages ─▶ handler asks the desk ─▶ body ─▶ template ─▶ HTML that works without a script
                                                                    └─ small modules add refreshing and selecting

Pages are rendered here, from templates with escaping on; plots are drawn as SVG with their numbers in a table. It needs
the extra ``web``.
"""

from typing import TYPE_CHECKING

from runwick.contracts.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from runwick.management.web import Management

__all__ = ["dashboard"]


def dashboard(management: "Management", title: str = "Runwick", sign_out_path: str | None = None) -> "ASGIApp":
    """The pages of one application, to be mounted or served alone.

    Args:
        management: the desk, the schemes and the grants.
        title: stands in the bar and in every page's title, beside the application's name.
        sign_out_path: the host's own route, as a path on the same site with any path base, to which the sign-out button
            posts an empty form; None hides the button.

    Raises:
        ConfigurationError: the extra ``web`` is not installed (code ``extra_missing``).
    """
    try:
        import jinja2 as _jinja2  # noqa: F401 - only whether it is there
        import starlette as _starlette  # noqa: F401
    except ImportError:
        message = "the dashboard needs Starlette and Jinja2; pip install 'runwick[web]'"
        raise ConfigurationError([Problem("extra_missing", "runwick[web]", message)]) from None
    from runwick.management.dashboard.mount import mounted

    return mounted(management, title, sign_out_path)
