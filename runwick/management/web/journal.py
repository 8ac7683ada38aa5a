"""What of sign-ins goes to the log: that one failed, with a coarse mark of its source and never its address, its user
or what it tried."""

import hmac
import logging
import os
from typing import Final

from starlette.requests import Request

from runwick.management.web.sources import source_of

_log = logging.getLogger("runwick")
_KEY: Final = os.urandom(32)
_MARK_CHARACTERS: Final = 4
"""Few, so that the mark groups lines and proves nothing of an address."""


def sign_in_failed(request: Request, scheme: str) -> None:
    """Say that a proof was not good."""
    mark = hmac.digest(_KEY, source_of(request).encode(), "sha256").hex()[:_MARK_CHARACTERS]
    text = "[1401] a sign-in to management failed (%s, source %s)"
    _log.warning(text, scheme, mark, extra={"event_id": 1401})
