"""How an executor hears that its attempt should stop, and what its handler sees of that.

    parent    cancel word ─ doorbell ─ INTERRUPT
    executor  the token reads the word, whoever asks it; its `wait` sleeps at the doorbell
              the signal's handler asks the invoker to interrupt the attempt, in its own thread

The word names the attempt that it means. A signal that comes late finds another attempt, or none, and changes nothing.
Nothing here stops a handler that never comes back to the interpreter: the parent does, by SIGKILL.
"""

import datetime
import select
import signal
import time
from types import FrameType
from typing import Final, Protocol

from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.errors import JobCancelled
from runwick.execution.failures import HANDLE, PROVIDE, Step
from runwick_supervisor.control import ControlWriter
from runwick_supervisor.doorbell import Doorbell
from runwick_supervisor.signals import INTERRUPT

_INTERRUPTIBLE: Final = (PROVIDE, HANDLE)
_WITHOUT_BELL_S: Final = 0.05
"""How often a token is looked at that a handler has closed the doorbell of."""


class Token:
    """Implements `runwick.contracts.cancelling.Cancellation` for one attempt of an executor. From any thread."""

    __slots__ = ("_bell", "_control", "_sequence")

    def __init__(self, control: ControlWriter, bell: Doorbell) -> None:
        self._control = control
        self._bell = bell
        self._sequence = control.sequence

    @property
    def causes(self) -> CancellationCause:
        return CancellationCause(self._control.causes_of(self._sequence))

    def is_set(self) -> bool:
        return self._control.causes_of(self._sequence) != 0

    def raise_if_set(self) -> None:
        if causes := self.causes:
            raise JobCancelled(causes)

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        until_s = None if timeout is None else time.monotonic() + timeout.total_seconds()
        poller = select.poll()
        poller.register(self._bell.descriptor, select.POLLIN)
        # Asked before each sleep: the word is written before the doorbell is rung.
        while not self.is_set():
            left_s = None if until_s is None else until_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                return False
            if self._bell.is_whole:
                poller.poll(None if left_s is None else left_s * 1000)
                self._hush()
            else:
                time.sleep(_WITHOUT_BELL_S if left_s is None else min(left_s, _WITHOUT_BELL_S))
        return True

    def _hush(self) -> None:
        """Take a ring that meant an earlier attempt; one that means this attempt is for every thread that waits."""
        if not self.is_set() and self._bell.take() and self.is_set():
            self._bell.ring()

    def __repr__(self) -> str:
        return f"<Cancellation {self.causes.name if self.is_set() else 'not asked for'}>"


class Interruptible(Protocol):
    """What runs attempts, as far as it is interrupted here."""

    def interrupt(self, causes: CancellationCause, *, insist: bool) -> None: ...


class Interrupting:
    """Follows the attempts of this executor from step to step, and interrupts the one that is asked to stop."""

    def __init__(self, control: ControlWriter, bell: Doorbell) -> None:
        self._control = control
        self._bell = bell
        self._heard = control.cancel_word
        self._interruptible: Interruptible | None = None

    def listen(self, interruptible: Interruptible) -> None:
        """From now on, interrupt its attempts. In the main thread."""
        self._interruptible = interruptible
        signal.signal(INTERRUPT, self._signalled)

    def token(self) -> Token:
        """The token of the attempt last taken."""
        word = self._control.cancel_word
        if word != self._heard:
            self._heard = word
            self._bell.take()
        return Token(self._control, self._bell)

    def moved(self, step: Step) -> None:
        """The attempt stands there from now on."""
        # Whoever asked before it began had nobody to interrupt. As long as nobody was ever asked, the word is 0.
        if self._control.phase(step) and step in _INTERRUPTIBLE:
            self._interrupt()

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._interrupt()

    def _interrupt(self) -> None:
        causes = self._control.causes_of(self._control.sequence)
        if not causes or self._interruptible is None:
            return
        try:
            self._interruptible.interrupt(CancellationCause(causes), insist=self._control.insists)
        except JobCancelled:
            self._control.interrupted()
            raise
