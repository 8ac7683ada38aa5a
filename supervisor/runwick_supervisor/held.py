"""One attempt in the backend's hands, from hand-over to its end, wherever it waits or runs."""

from runwick.contracts.attempts import Attempt
from runwick_supervisor.expectations import AHEAD_MS


class Held:
    """One attempt in the backend's hands."""

    __slots__ = ("attempt", "expected_ms", "fenced_s", "known", "stranded", "waits_since_s")

    def __init__(self, attempt: Attempt, waits_since_s: float, fenced_s: float) -> None:
        self.attempt = attempt
        self.fenced_s = fenced_s
        """On the loop's clock: past this nobody lives who runs it. A renewed lease moves it on."""
        self.waits_since_s = waits_since_s
        """On the loop's clock: since it was handed over, or since it first lost the executor it was given to."""
        self.stranded = False
        self.expected_ms = AHEAD_MS
        self.known = False
        """Whether `expected_ms` was learned; an unknown run fills an executor."""

    def expect(self, expected_ms: float | None) -> None:
        """Hear what it should take, as far as that is known now."""
        if expected_ms is not None:
            self.expected_ms, self.known = expected_ms, True

    def strand(self, now_s: float) -> None:
        """It lost its executor before it began. Its wait is counted from the first time that this happens."""
        if not self.stranded:
            self.waits_since_s, self.stranded = now_s, True
