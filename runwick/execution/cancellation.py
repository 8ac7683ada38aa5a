"""The token of a run in this process: whoever wants it stopped asks, the handler sees it.

It only tells. Stopping a run that does not look is up to the backend that has it.
"""

import datetime
import threading
from typing import Final

from runwick.contracts.cancelling import Cancellation, CancellationCause
from runwick.contracts.errors import JobCancelled


class Token:
    """Implements `runwick.contracts.cancelling.Cancellation`, which documents what a handler sees; from any thread."""

    def __init__(self) -> None:
        self._causes = CancellationCause(0)
        self._asked = threading.Event()
        self._turn = threading.Lock()

    @property
    def causes(self) -> CancellationCause:
        return self._causes

    def ask(self, cause: CancellationCause) -> None:
        """Ask the run to stop, for this as well. From any thread."""
        with self._turn:
            self._causes |= cause
        self._asked.set()

    def is_set(self) -> bool:
        return self._asked.is_set()

    def raise_if_set(self) -> None:
        if self.is_set():
            raise JobCancelled(self._causes)

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        return self._asked.wait(None if timeout is None else timeout.total_seconds())

    def __repr__(self) -> str:
        return f"<Cancellation {self._causes.name if self._causes else 'not asked for'}>"


NEVER: Final[Cancellation] = Token()
"""The token of a run that nobody can ask to stop."""
