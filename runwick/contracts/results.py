"""What a middleware, or a handler, may answer instead of a plain value."""

import datetime
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, final

import msgspec


@final
class Succeeded(msgspec.Struct, frozen=True):
    """The run succeeded; a plain value means the same."""

    value: Any = None
    """Stored as the job's result."""


@final
class Retry(msgspec.Struct, frozen=True):
    """Run the job again later; it costs one execution like any failure."""

    reason: str
    """Stored as the code where it is a name, else the code is ``retry_requested``."""
    delay: datetime.timedelta | None = None
    """How long to wait, without jitter, capped at the job's longest retry delay; None leaves it to the policy."""


@final
class Failed(msgspec.Struct, frozen=True):
    """Fail for good: retrying cannot help."""

    code: str
    message: str = ""
    """For people; cut at 1,024 bytes."""


@final
class Cancelled(msgspec.Struct, frozen=True):
    """End the job as cancelled."""

    reason: str
    """Stored as the code where it is a name, else the code is ``cancel_requested``."""


Result: TypeAlias = Succeeded | Retry | Failed | Cancelled

Next: TypeAlias = Callable[[], Result]
"""What a plain middleware calls, once, to run the rest."""

NextAsync: TypeAlias = Callable[[], Coroutine[Any, Any, Result]]
"""What an ``async`` one calls and awaits."""
