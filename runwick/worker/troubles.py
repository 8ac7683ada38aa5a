"""Which calls to the store fail, told once when that begins and once when it is over, however often they are repeated.

Each act has a state of its own: that renewals are answered again says nothing of claims. Claims that an operator does
not admit are no failure, and are told in words of their own.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from runwick.contracts.ambient import Clock
from runwick.contracts.errors import AdmissionClosed, OutcomeUnknown, RunwickError, StoreError, StoreUnavailable
from runwick.contracts.health import HealthStatus, RoleHealth
from runwick.telemetry import events
from runwick.telemetry.bus import Bus

_CLAIMS: Final = frozenset({"claim", "begin"})
_NO_ANSWER: Final = (OutcomeUnknown, StoreUnavailable)


class Trouble(msgspec.Struct, frozen=True):
    """What one act meets at present."""

    since_s: float
    sort: str
    error: Exception


class Troubles:
    """The store's failures as one worker meets them.

    Args:
        over: called with the act's name when one that failed is answered again.
    """

    def __init__(self, clock: Clock, bus: Bus, over: Callable[[str], None]) -> None:
        self._clock = clock
        self._bus = bus
        self._over = over
        self._present: dict[str, Trouble] = {}
        self._refused_since_s: float | None = None
        """Since when claims are not admitted."""

    def __bool__(self) -> bool:
        return bool(self._present) or self._refused_since_s is not None

    def met(self, act: str, error: Exception) -> None:
        """This act was not answered, or refused."""
        if act in _CLAIMS and isinstance(error, AdmissionClosed):
            self._refused(act, error)
            return
        if act == "register" and isinstance(error, StoreError) and not isinstance(error, _NO_ANSWER):
            return  # the worker is not let in, which whoever started it is told
        sort = error.code if isinstance(error, RunwickError) else type(error).__name__
        known = self._present.get(act)
        since_s = self._clock.steady_s() if known is None else known.since_s
        self._present[act] = Trouble(since_s, sort, error)
        if known is None or known.sort != sort:
            self._bus.publish(events.StoreCallFailed(act, sort, f"{type(error).__name__}: {error}"))

    def end(self, act: str) -> None:
        """This act was answered."""
        self._answered(act)
        if act == "claim" and self._refused_since_s is not None:
            seconds, self._refused_since_s = self._clock.steady_s() - self._refused_since_s, None
            self._bus.publish(events.ClaimsAdmitted(seconds))

    def _refused(self, act: str, error: AdmissionClosed) -> None:
        self._answered(act)
        if self._refused_since_s is None:
            self._refused_since_s = self._clock.steady_s()
            self._bus.publish(events.ClaimsRefused(error.message))

    def _answered(self, act: str) -> None:
        trouble = self._present.pop(act, None)
        if trouble is not None:
            self._bus.publish(events.StoreCallAnswered(act, self._clock.steady_s() - trouble.since_s))
            self._over(act)

    def of_store(self) -> RoleHealth:
        """Whether the store answers."""
        if not self._present:
            return RoleHealth("store", HealthStatus.HEALTHY)
        act, trouble = min(self._present.items(), key=lambda item: item[1].since_s)
        no_answer = isinstance(trouble.error, (*_NO_ANSWER, OSError))
        seconds = self._clock.steady_s() - trouble.since_s
        text = f"{act} has failed for {seconds:.1f} s: {trouble.error}"
        return RoleHealth("store", HealthStatus.UNHEALTHY, "store_unavailable" if no_answer else trouble.sort, text)

    @property
    def admitted(self) -> bool:
        """Whether claims are admitted, as far as is known."""
        return self._refused_since_s is None

    def of_admission(self) -> RoleHealth:
        """Whether an operator admits claims."""
        if self._refused_since_s is None:
            return RoleHealth("admission", HealthStatus.HEALTHY)
        seconds = self._clock.steady_s() - self._refused_since_s
        text = f"an operator has admitted no claims for {seconds:.1f} s"
        return RoleHealth("admission", HealthStatus.DEGRADED, "admission_closed", text)

    def knows(self, error: Exception) -> bool:
        """Whether this very error was met here, and therefore told."""
        return any(trouble.error is error for trouble in self._present.values())
