"""What the faces of management on the web share: who asks (schemes, sessions), that he means it (antiforgery), how much
he may (limits), and the one table of routes through which every request goes.

    request ─▶ who? ─▶ how often? ─▶ may he? ─▶ does he mean it? ─▶ handler ─▶ desk

There is no anonymous mode, and nothing here knows a password: the host brings the sign-in. It needs the extra ``web``.
"""

from runwick.contracts.errors import ConfigurationError, Problem

try:
    import starlette as _starlette  # noqa: F401 - only whether it is there
except ImportError:
    raise ConfigurationError(
        [Problem("extra_missing", "runwick[web]", "the web parts need Starlette; pip install 'runwick[web]'")]
    ) from None

from runwick.management.web.basic import BasicScheme
from runwick.management.web.bearer import BearerScheme
from runwick.management.web.limits import ManagementLimits
from runwick.management.web.management import Management
from runwick.management.web.one_time_link import OneTimeLink
from runwick.management.web.principals import Principal, Scheme
from runwick.management.web.sessions import SessionScheme

__all__ = [
    "BasicScheme",
    "BearerScheme",
    "Management",
    "ManagementLimits",
    "OneTimeLink",
    "Principal",
    "Scheme",
    "SessionScheme",
]
