"""Where one attempt stands, and whether it may be interrupted there.

    find · decode · upgrade │  provide · handle  │ encode · close
       no interrupt         │ one is let through │  none again

At most one is let through, so that whoever catches it can clean up undisturbed. One that comes too early has to
be tried again at the first step that lets it through: who interrupts hears of each step.
"""

from collections.abc import Callable

from runwick.contracts.cancelling import CancellationCause
from runwick.declarations.handlers import HandlerBinding
from runwick.execution.failures import FIND, HANDLE, PROVIDE, Step

_NONE = CancellationCause(0)


class Passage:
    """One attempt's way through its steps. For the attempt's thread, and for a signal handler in it."""

    __slots__ = ("_handler", "_moved", "interrupted", "is_in_plain_call", "step", "was_raised")

    def __init__(self, moved: Callable[[Step], None] | None) -> None:
        """Begin.

        Args:
            moved: hears of each change of step from `Step.PROVIDE` on.
        """
        self.step = FIND
        self.interrupted = _NONE
        """Why it was interrupted, if it was."""
        self.was_raised = False
        """Whether that was an exception raised wherever it stood."""
        self.is_in_plain_call = False
        """Whether a handler that is not async is being called."""
        self._moved = moved
        self._handler: HandlerBinding | None = None

    def to(self, step: Step) -> None:
        """Go on to `step`."""
        self.step = step
        if self._moved is not None:
            self._moved(step)

    def may_be_interrupted_as(self, handler: HandlerBinding) -> None:
        """From the next step on it may be interrupted as `handler` allows."""
        self._handler = handler

    @property
    def may_stop(self) -> bool:
        """Whether it stands where an interrupt does what it should."""
        return self._handler is not None and self.step in (PROVIDE, HANDLE)

    def lets_through(self, causes: CancellationCause, *, insist: bool) -> bool:
        """Whether it is to be interrupted now; that is noted.

        Args:
            causes: why it is asked to stop.
            insist: also a handler that could see the token for itself.
        """
        handler = self._handler
        if handler is None or self.interrupted or not self.may_stop:
            return False
        if handler.interrupt == "token" if insist else handler.takes_context:
            return False
        self.interrupted = causes
        return True
