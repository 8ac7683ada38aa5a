"""What this process still holds of each claim it made, and what it knows of it.

The row of a claim serves recovery. When all attempts of a claim have ended here it is of no use any more, and the next
settlement takes it along: so recovery need not look at it, and the table stays small. Rows that are missed here (their
process ended, their leases were lost) are recovery's to delete. Threads may share it.
"""

import collections
import contextlib
from collections.abc import Iterable
from typing import Final, NamedTuple

_CLAIMS_MAX: Final = 10_000
"""Of more claims than that, the oldest are left to recovery."""
_ENDED_MAX: Final = 1_000


class Maker(NamedTuple):
    """By whom a claim was made, and when."""

    application: int
    worker: bytes
    claimed_at_ms: int


class Claims:
    """The claims of one store object of which something is left."""

    def __init__(self) -> None:
        self._left: dict[bytes, set[bytes]] = {}
        self._makers: dict[bytes, Maker] = {}
        self._ended: collections.deque[bytes] = collections.deque(maxlen=_ENDED_MAX)

    def made(self, token: bytes, jobs: Iterable[bytes], maker: Maker | None = None) -> None:
        """A claim holds these jobs."""
        self._left[token] = set(jobs)
        if maker is not None:
            self._makers[token] = maker
        if len(self._left) > _CLAIMS_MAX:
            oldest = next(iter(self._left))
            self._left.pop(oldest, None)
            self._makers.pop(oldest, None)

    def maker(self, token: bytes) -> Maker | None:
        """Who made a claim of which something is left; None when nobody here knows."""
        return self._makers.get(token)

    def gone(self, token: bytes, jobs: Iterable[bytes]) -> None:
        """These jobs are not held by this claim any more; they may be told again."""
        left = self._left.get(token)
        if left is None:
            return
        left.difference_update(jobs)
        if not left and self._left.pop(token, None) is not None:
            self._makers.pop(token, None)
            self._ended.append(token)

    def ended(self) -> list[bytes]:
        """Claims of which nothing is left, so that their rows may go. Each is told once."""
        tokens = []
        with contextlib.suppress(IndexError):
            while True:
                tokens.append(self._ended.popleft())
        return tokens

    def forget(self) -> None:
        """Know nothing again."""
        self._left.clear()
        self._makers.clear()
        self._ended.clear()
