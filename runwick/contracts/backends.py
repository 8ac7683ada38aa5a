"""A backend runs attempts: inline, on threads, on forked executors. The engine knows it by these protocols alone.

All calls happen on the engine's event loop and return at once; what takes time comes back through the sink.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from runwick.contracts.activity import ExecutorActivity, Mark, StackAnswer
from runwick.contracts.attempts import Attempt
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.health import RoleHealth
from runwick.contracts.outcomes import Outcome


class Room(msgspec.Struct, frozen=True):
    """What a pool's executors can take now."""

    free: int
    """Executors that wait for work and hold none."""
    ahead: int
    """Jobs that executors could take beyond that, so that they do not run dry; 0 while jobs are long."""
    payload_bytes: int
    """Room for payloads in the hand-off."""
    worthwhile: bool
    """Whether a claim now is worth its round trip: an executor waits, or half of what was handed ahead is used up."""


class Completion(msgspec.Struct, frozen=True, gc=False):
    """One attempt that reached its executor, and what it ended in."""

    attempt: Attempt
    outcome: Outcome


class Sink(Protocol):
    """Where a backend reports to; the engine implements it."""

    def completed(self, completions: Sequence[Completion]) -> None:
        """These ended. Their slots are free again already; their tickets return when they are settled."""
        ...

    def unstarted(self, attempts: Sequence[Attempt]) -> None:
        """These provably never reached their handler and nobody here will run them: release them uncharged."""
        ...

    def gave_up(self, attempts: Sequence[Attempt]) -> None:
        """These go on although their time limit is long over, and nothing can stop them: let their leases run out. They
        keep their slots, and are reported like any other once they end; nothing is written for that."""
        ...

    def asked(self, attempt: Attempt, cause: CancellationCause) -> None:
        """The backend asked this run to stop by itself: its time limit is over."""
        ...

    def looked(self, answer: StackAnswer) -> None:
        """The stack of a run that `look` asked for."""
        ...

    def room_changed(self) -> None:
        """`room` would answer differently now."""
        ...

    def failed(self, reason: str) -> None:
        """The backend cannot run anything any more; the worker must stop."""
        ...


class Backend(Protocol):
    """Runs attempts of one pool, each at most once."""

    name: str

    async def start(self, sink: Sink) -> None:
        """Bring the executors up.

        Raises:
            RunwickError: they cannot be brought up; nothing was started.
        """
        ...

    def room(self) -> Room: ...

    def hand_over(self, attempts: Sequence[Attempt], deadline_s: float) -> None:
        """Take these; they fit in what `room` answered last. The first `room().free` go to waiting executors.

        Args:
            attempts: all begun in the store, with their payloads.
            deadline_s: on the steady clock, until when they may run unless `extend` says more: the local deadline of
                their leases.
        """
        ...

    def extend(self, deadlines_s: Mapping[bytes, float]) -> None:
        """Leases were renewed: attempt id to local deadline, on the steady clock. Those that it does not hold are
        another pool's."""
        ...

    def take_back(self) -> Sequence[Attempt]:
        """Take back everything that provably has not begun, so that it can be released."""
        ...

    def next_completion_ms(self) -> float | None:
        """Expected duration of the shortest attempt now running; None when nothing runs. Decides how long a
        completion waits for company."""
        ...

    def running(self) -> int:
        """How many attempts it holds, begun or not."""
        ...

    def ask(self, attempts: Sequence[Attempt] | None, cause: CancellationCause, within_s: float) -> None:
        """Ask these runs to stop, or all; where the backend can, they are killed when `within_s` is over. Each is
        reported through the sink when its end is confirmed, like any other; what has not begun is given back.

        Causes add up and the earliest end counts: asking again never gives more time. Those that it does not hold are
        another pool's.
        """
        ...

    def doing(self) -> Sequence[ExecutorActivity]:
        """What each executor does now."""
        ...

    def marks(self) -> Sequence[Mark]:
        """Which of the runs it holds have begun, and when."""
        ...

    def look(self, attempt_ids: Sequence[bytes]) -> None:
        """Report the Python stack of these runs through the sink, soon. Those that it does not hold are another
        pool's, or have ended."""
        ...

    def health(self) -> RoleHealth:
        """Whether it has the executors that it should have."""
        ...

    async def stop(self) -> None:
        """Let executors that hold nothing end, and wait until every process is gone. Whoever asks all to stop within no
        time meanwhile has what is left killed; asking later does nothing."""
        ...
