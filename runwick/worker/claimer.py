"""The claimer: waits until executors want work, asks the store for exactly that much, hands it over.

    room? ──no──▶ sleep until the backend says so
      │yes
    claim ──found──▶ hold ▶ begin what was only reserved ▶ hand over ▶ let the executors take it ▶ room?
      │ │empty ── some lane may have more ──▶ room?
      │ arm the store's hint ▶ claim once more ▶ sleep until the next due row, a hint, an alarm, or the safety poll
      │
      ├─ no answer ──▶ the same claim again, by its token, until it is answered or its lease has run out
      └─ not admitted ▶ told once, then asked for at each safety poll

Which lanes a claim looks into, in which order, and how much it takes of each is said by the pool's turns, which hear
what came of it; they live here, in memory.

An alarm is set for each retry that this worker has just settled and that is due soon, and for each job that its claim
was told to have promised a place in a rate window: it rings at that moment, so that neither waits for a poll.

The second claim after arming closes the gap in which work could arrive between the empty answer and the hint. The hint
stays armed until a claim finds all that it asked for, so that a lone job costs no second claim again.
"""

import asyncio
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from runwick.contracts.ambient import Clock, Dice, Ids
from runwick.contracts.attempts import Attempt, Claim, ClaimPlan, Kind, Lane
from runwick.contracts.backends import Room
from runwick.contracts.errors import AdmissionClosed, OutcomeUnknown
from runwick.contracts.stores import Store
from runwick.policy.lanes import Turns, in_rank_order
from runwick.runtime.wake import Wake
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.wire.limits import PAYLOAD_MAX_BYTES
from runwick.worker.alarms import Alarms
from runwick.worker.handover import HandOver
from runwick.worker.line import Line
from runwick.worker.pauses import Pause
from runwick.worker.pools import ServedPool
from runwick.worker.registry import Registry, Share
from runwick.worker.timings import (
    BATCH_MAX_BYTES,
    CLAIM_MAX,
    FAILED_ROUND_PAUSE_S,
    IDLE_JITTER_S,
    IDLE_SLEEP_MIN_S,
    JOIN_MIN,
    PROMISES_WITHIN_S,
    Timings,
)

_LANE: Final = operator.attrgetter("lane")


class Intake(msgspec.Struct, frozen=True):
    """For whom a pool claims: the worker, and the kinds it can decode and has a handler for."""

    application: str
    worker: bytes
    kinds: frozenset[Kind]


class Neighbours(NamedTuple):
    """Whom a claimer tells what it does."""

    release: Callable[[Sequence[Attempt]], None]
    """Takes what was claimed and will not be run."""
    claims: Callable[[], None]
    """A claim is about to be sent."""
    found_nothing: Callable[[], None]
    holds: Callable[[], None]
    """Something is held now."""
    answered_late: Callable[[], None]
    """Leases were granted whose answer took so long that they want to be renewed soon."""


class Asked(NamedTuple):
    """A claim whose answer nobody has yet."""

    plan: ClaimPlan
    started_s: float
    """When it was first sent: what it claims is ours from then on at the earliest."""
    turns: Turns
    """Who made its plan, and hears what came of it."""


class Claimer:
    """One pool's claims."""

    def __init__(
        self,
        store: Store,
        line: Line,
        pool: ServedPool,
        share: Share,
        registry: Registry,
        intake: Intake,
        timings: Timings,
        neighbours: Neighbours,
        *,
        clock: Clock,
        dice: Dice,
        ids: Ids,
        bus: Bus,
        name: str = "claimer",
    ) -> None:
        self.name = name
        self.wake = Wake()
        self.pause_after_failure_s = self._failure_pause_s = min(FAILED_ROUND_PAUSE_S, timings.safety_poll_s)
        self._store = store
        self._line = line
        self._pool = pool
        self._backend = pool.backend
        self._turns = pool.turns()
        self._alarms = Alarms(self.wake.ring, timings.safety_poll_s + IDLE_JITTER_S)
        self._promises = Alarms(self.wake.ring, PROMISES_WITHIN_S)
        self._share = share
        self._registry = registry
        self._intake = intake
        self._timings = timings
        self._tell = neighbours
        self._hand_over = HandOver(
            store,
            line,
            pool.backend,
            registry,
            timings,
            clock=clock,
            bus=bus,
            release=neighbours.release,
            stopped=lambda: self.stopped,
        )
        self._clock = clock
        self._dice = dice
        self._ids = ids
        self._bus = bus
        self._asked: Asked | None = None
        self._doubtful = False
        """Whether the claim that was asked for may have been applied, unheard."""
        self._doubts = Pause(timings.retry_initial_s, timings.retry_max_s)
        self._not_before_s = 0.0
        self._joins = False
        self._meets_lone = False
        self._lacks_tickets = False
        self._lacks_room = False
        """Whether it sleeps since a claim was not worth its round trip."""
        self._disarm: Callable[[], None] | None = None
        self.found_nothing = False
        """Whether the last claim was empty: nothing is due for this pool."""
        self.stopped = False
        """Set by the drain: what is claimed from now on goes straight back."""

    @property
    def is_claiming(self) -> bool:
        """Whether a claim is under way, or was sent and not answered: nobody holds yet what it took."""
        return self._asked is not None

    def join(self) -> None:
        """Results are written now: a claim that goes along costs no transaction of its own."""
        if self._asked is None:
            self._joins = True
            self.wake.ring()

    def look_for_work(self) -> None:
        """The backend's room has changed."""
        if not self._lacks_room or self._backend.room().worthwhile:
            self.wake.ring()

    def serve(self, pool: ServedPool, kinds: frozenset[Kind]) -> None:
        """Claim for this pool's lanes, and these kinds, from now on; the backend stays."""
        self._pool = pool
        self._turns = pool.turns()
        self._intake = msgspec.structs.replace(self._intake, kinds=kinds)
        self.found_nothing = False
        self.wake.ring()

    def due_in(self, lane: Lane, delay_ms: int) -> None:
        """A job of that lane becomes due then, which no hint of the store's will tell at the time."""
        if not self.stopped and lane.queue in self._pool.queues:
            self._alarms.set(delay_ms)

    def tickets_returned(self) -> None:
        """The registry has let go of some attempts."""
        if self._lacks_tickets:
            self.wake.ring()

    async def run_once(self) -> float | None:
        if self._line.broken is not None:
            self._asked = None
            return None
        now_s = self._clock.steady_s()
        if now_s < self._not_before_s:
            return self._not_before_s - now_s
        self._lacks_room = False
        asked = self._asked or self._wanted(now_s)
        if asked is None:
            return None
        try:
            return await self._claim(asked)
        except AdmissionClosed:
            # An operator said so, and it was told. No wake-up may turn the poll into a stream of refusals.
            self._not_before_s = self._clock.steady_s() + self._timings.safety_poll_s
            return self._timings.safety_poll_s

    def _wanted(self, now_s: float) -> Asked | None:
        """What to ask for now, if anything."""
        room = self._backend.room()
        joins, self._joins = self._joins, False
        self._lacks_room = not (room.worthwhile or (joins and room.ahead >= JOIN_MIN))
        if self.stopped or self._lacks_room:
            return None
        if self._meets_lone and room.free == 0:
            return None  # the next executor that runs dry takes it; until then nothing may be handed ahead of it
        tickets = self._share.tickets
        self._lacks_tickets = tickets <= 0
        return None if self._lacks_tickets else Asked(self._plan(room, tickets), now_s, self._turns)

    def _plan(self, room: Room, tickets: int) -> ClaimPlan:
        free = min(room.free, tickets, CLAIM_MAX)
        ahead = min(room.ahead, tickets - free, CLAIM_MAX - free)
        return ClaimPlan(
            application=self._intake.application,
            worker=self._intake.worker,
            claim_token=self._ids.secret(),
            turns=self._turns.plan(free + ahead),
            kinds=self._intake.kinds,
            free=free,
            ahead=ahead,
            payload_bytes=min(room.payload_bytes, self._share.room_bytes, BATCH_MAX_BYTES),
            lease_ms=self._timings.lease_ms,
        )

    async def _claim(self, asked: Asked) -> float | None:
        self._tell.claims()
        claim = await self._answer(asked)
        if claim is None:
            return None
        counts = _counts(claim.attempts)
        asks_again = _heard(asked, claim, counts)
        self.found_nothing = not claim.attempts and not asks_again
        self._meets_lone = claim.stopped_at_lone
        self._note_moved(claim)
        if claim.attempts:
            if len(claim.attempts) >= asked.plan.free + asked.plan.ahead:
                self._unarm()  # there is more than can be taken: what comes need not be told
            ordered = in_rank_order(claim.attempts) if len(counts) > 1 else claim.attempts
            await self._hand_over.take(ordered, asked.started_s)
            if self._backend.room().worthwhile:
                # One turn of the loop lets completions arrive, so that the next claim asks for all of the room.
                await asyncio.sleep(0)
            return 0.0
        if asks_again:
            return 0.0
        self._tell.found_nothing()
        return self._idle_sleep_s(claim)

    def _note_moved(self, claim: Claim) -> None:
        """Tell of what was moved aside, and wake up when it is to come."""
        if claim.parked or claim.deferred:
            self._bus.publish(events.MovedAside(claim.parked, claim.deferred))
        if not self.stopped:
            for delay_ms in claim.called_in_ms:
                self._promises.set(delay_ms)

    async def _answer(self, asked: Asked) -> Claim | None:
        """Ask, and hold what is answered; None when the line was cut meanwhile, and nothing may be held any more."""
        self._asked = asked
        try:
            claim = await self._line.ask(self._store.claim(asked.plan))
        except Exception as error:
            self._doubt(asked, error)
            raise
        self._asked, self._doubtful = None, False
        self._doubts.reset()
        self.pause_after_failure_s = self._failure_pause_s
        if self._line.broken is not None:
            return None
        if claim.attempts:
            took_s = self._clock.steady_s() - asked.started_s
            self._registry.add(claim.attempts, asked.started_s + self._timings.attempt_deadline_s, self._share)
            self._tell.holds()
            self._bus.publish(events.Claimed(claim.attempts, took_s))
            if took_s > self._timings.control_timeout_s:
                self._tell.answered_late()
        return claim

    def _doubt(self, asked: Asked, error: Exception) -> None:
        """No answer: remember the claim as long as anything that it took could still be ours."""
        self._doubtful = self._doubtful or isinstance(error, OutcomeUnknown)
        if not self._doubtful or self._clock.steady_s() - asked.started_s > self._timings.lease_ms / 1000:
            self._asked, self._doubtful = None, False
        self.pause_after_failure_s = self._failure_pause_s if self._asked is None else self._doubts.take_s()

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
        self._alarms.clear()
        self._promises.clear()
        self._unarm()
        self.wake.ring()

    def _unarm(self) -> None:
        if self._disarm is not None:
            self._disarm()
            self._disarm = None


def _heard(asked: Asked, claim: Claim, counts: Mapping[Lane, int]) -> bool:
    """Tell the turns what came of their plan; answers whether there may be more to take at once."""
    plan, attempts = asked.plan, claim.attempts
    # One that ended for its bytes does not say so: it did if the largest payload would have been too much.
    is_full = len(attempts) >= plan.free + plan.ahead or (
        bool(attempts) and sum(each.payload_bytes for each in attempts) + PAYLOAD_MAX_BYTES > plan.payload_bytes
    )
    cut = claim.again or claim.stopped_at_lone or is_full
    return asked.turns.took(plan.turns, counts, cut=cut) or claim.again


def _counts(attempts: Sequence[Attempt]) -> Mapping[Lane, int]:
    """How many are of each lane. They come lane by lane."""
    counts: dict[Lane, int] = {}
    for lane, of_lane in itertools.groupby(attempts, _LANE):
        counts[lane] = counts.get(lane, 0) + sum(1 for _ in of_lane)
    return counts
