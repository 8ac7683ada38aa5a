"""What comes in through the door: clock, dice and ids.

Every loop and every decision that needs one takes it through its constructor, so that a test can hand in its own.
The system's implementations live in `runwick.runtime.ambient`.
"""

from typing import Protocol


class Clock(Protocol):
    """Reads time. Durations and points in time are different questions with different clocks."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, rounded down. Only for what is stored or shown."""
        ...

    def steady_s(self) -> float:
        """Seconds on a clock that never steps and counts through suspension. Only differences mean something."""
        ...


class Dice(Protocol):
    """Chance."""

    def fraction(self) -> float:
        """A number in [0, 1)."""
        ...


class Ids(Protocol):
    """Makes new identities, 16 bytes each."""

    def ordered(self) -> bytes:
        """A UUIDv7: later ids of one process sort after earlier ones."""
        ...

    def secret(self) -> bytes:
        """16 bytes nobody can guess."""
        ...
