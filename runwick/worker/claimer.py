"""The claimer: waits until executors want work, asks the store for exactly that much, hands it over.

    room? ──no──▶ sleep until the backend says so
      │yes
    claim ──found──▶ hold ▶ begin what was only reserved ▶ hand over ▶ let the executors take it ▶ room?
      │empty
    arm the store's hint ▶ claim once more ▶ sleep until the next due row, a hint, or the safety poll

The second claim after arming closes the gap in which work could arrive between the empty answer and the hint.
"""

import asyncio
from collections.abc import Callable, Sequence

from runwick.contracts.ambient import Clock, Dice, Ids
from runwick.contracts.attempts import Attempt, Claim, ClaimPlan, Kind, Lane
from runwick.contracts.backends import Backend
from runwick.contracts.stores import ClaimStore, Store
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.registry import Registry
from runwick.worker.resolving import resolved
from runwick.worker.timings import (
    BATCH_MAX_BYTES,
    CLAIM_MAX,
    FAILED_ROUND_PAUSE_S,
    HELD_MAX,
    IDLE_JITTER_S,
    IDLE_SLEEP_MIN_S,
    JOIN_MIN,
    Timings,
)


class Intake:
    """What one pool may claim: its lanes in order and the kinds it can decode and has a handler for."""

    def __init__(self, application: str, worker: bytes, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> None:
        self.application = application
        self.worker = worker
        self.lanes = tuple(lanes)
        self.kinds = kinds


class Claimer:
    """One pool's claims."""

    name = "claimer"
    pause_after_failure_s = FAILED_ROUND_PAUSE_S

    def __init__(
        self,
        store: Store,
        backend: Backend,
        registry: Registry,
        intake: Intake,
        timings: Timings,
        *,
        clock: Clock,
        dice: Dice,
        ids: Ids,
        bus: Bus,
        release: Callable[[Sequence[Attempt]], None],
        found_nothing: Callable[[], None],
        claims: Callable[[], None],
    ) -> None:
        self.wake = Wake()
        self._store = store
        self._claims: ClaimStore = store
        self._backend = backend
        self._registry = registry
        self._intake = intake
        self._timings = timings
        self._clock = clock
        self._dice = dice
        self._ids = ids
        self._bus = bus
        self._release = release
        self._tell_found_nothing = found_nothing
        self._tell_claims = claims
        self._joins = False
        self._meets_lone = False
        self._claiming = False
        self._disarm: Callable[[], None] | None = None
        self.found_nothing = False
        """Whether the last claim was empty: nothing is due for this pool."""
        self.stopped = False
        """Set by the drain: what is claimed from now on goes straight back."""

    @property
    def is_claiming(self) -> bool:
        """Whether a claim is under way, whose answer nobody holds yet."""
        return self._claiming

    def join(self) -> None:
        """Results are written now: a claim that goes along costs no transaction of its own."""
        if not self._claiming:
            self._joins = True
            self.wake.ring()

    async def run_once(self) -> float | None:
        room = self._backend.room()
        tickets = HELD_MAX - len(self._registry)
        joins, self._joins = self._joins, False
        asks = room.worthwhile or (joins and room.ahead >= JOIN_MIN)
        if self.stopped or not asks or tickets <= 0:
            return None
        if self._meets_lone and room.free == 0:
            return None  # the next executor that runs dry takes it; until then nothing may be handed ahead of it
        free = min(room.free, tickets, CLAIM_MAX)
        ahead = min(room.ahead, tickets - free, CLAIM_MAX - free)
        started_s = self._clock.steady_s()
        self._tell_claims()
        claim = await self._claim(free, ahead, min(room.payload_bytes, BATCH_MAX_BYTES), started_s)
        self.found_nothing = not claim.attempts
        self._meets_lone = claim.stopped_at_lone
        if claim.attempts:
            self._unarm()
            await self._hand_over(claim.attempts, started_s + self._timings.attempt_deadline_s)
            # One turn of the loop lets completions and fresh room arrive, so that the next claim asks for all of it.
            await asyncio.sleep(0)
            return 0.0
        self._tell_found_nothing()
        return self._idle_sleep_s(claim)

    async def _claim(self, free: int, ahead: int, payload_bytes: int, started_s: float) -> Claim:
        plan = ClaimPlan(
            application=self._intake.application,
            worker=self._intake.worker,
            claim_token=self._ids.secret(),
            lanes=self._intake.lanes,
            kinds=self._intake.kinds,
            free=free,
            ahead=ahead,
            payload_bytes=payload_bytes,
            lease_ms=self._timings.lease_ms,
        )
        self._claiming = True
        try:
            claim = await resolved(
                self._claims, lambda: self._claims.claim(plan), self._timings.claim_budget_s, self._timings, self._clock
            )
        finally:
            self._claiming = False
        if claim.attempts:
            self._registry.add(claim.attempts, started_s + self._timings.attempt_deadline_s)
            self._bus.publish(events.Claimed(claim.attempts, self._clock.steady_s() - started_s))
        return claim

    async def _hand_over(self, attempts: Sequence[Attempt], deadline_s: float) -> None:
        """Give the backend what has begun; begin the rest first, one by one, because their payloads are large."""
        if self.stopped or deadline_s - self._clock.steady_s() < self._timings.invocation_margin_s:
            # The claim took so long that too little of the lease is left to start a handler.
            self._release(attempts)
            return
        ready = [attempt for attempt in attempts if attempt.begun]
        if ready:
            self._backend.hand_over(ready)
        for attempt in attempts:
            if not attempt.begun:
                await self._begin(attempt)

    async def _begin(self, attempt: Attempt) -> None:
        try:
            begun = await resolved(
                self._claims,
                lambda: self._claims.begin(attempt),
                self._timings.begin_budget_s,
                self._timings,
                self._clock,
            )
        except Exception:
            self._release([attempt])
            raise
        if begun is None:
            self._registry.remove([attempt])
            self._bus.publish(events.LeaseLost(attempt, "it was no longer ours when its payload was read"))
            return
        self._registry.begun(begun)
        if self.stopped:
            self._release([begun])
        else:
            self._backend.hand_over([begun])

    def _idle_sleep_s(self, claim: Claim) -> float:
        if self._disarm is None:
            self._disarm = self._store.wake_on_work(self.wake.ring)
            return 0.0
        due_s = self._timings.safety_poll_s
        if claim.next_due_in_ms is not None:
            due_s = min(due_s, claim.next_due_in_ms / 1000)
        return max(IDLE_SLEEP_MIN_S, due_s) + IDLE_JITTER_S * self._dice.fraction()

    def stop(self) -> None:
        """Claim nothing more; a claim under way gives back what it finds."""
        self.stopped = True
        self._unarm()
        self.wake.ring()

    def _unarm(self) -> None:
        if self._disarm is not None:
            self._disarm()
            self._disarm = None
