"""Waiting for a job to end: one rhythm for the blocking and the asynchronous caller.

The first looks follow each other closely, since most jobs that somebody waits for are short; then the pauses grow.
"""

import datetime
from collections.abc import Iterator
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.contracts.errors import InvalidArgument

FIRST_PAUSE_S: Final = 0.005
LONGEST_PAUSE_S: Final = 0.25
GROWTH: Final = 1.5


def pauses_s(timeout: datetime.timedelta, clock: Clock) -> Iterator[float]:
    """The pauses between looks, in seconds; it ends when the time is up, after a last look at the very end.

    Raises:
        InvalidArgument: the timeout is no timedelta (code ``invalid_time``).
    """
    if not isinstance(timeout, datetime.timedelta):
        message = f"timeout is {timeout!r}; give a timedelta, such as datetime.timedelta(seconds=5)"
        raise InvalidArgument("invalid_time", message)
    deadline_s = clock.steady_s() + timeout.total_seconds()
    pause_s = FIRST_PAUSE_S
    while (left_s := deadline_s - clock.steady_s()) > 0:
        yield min(pause_s, left_s)
        pause_s = min(pause_s * GROWTH, LONGEST_PAUSE_S)
