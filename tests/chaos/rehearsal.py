"""A seeded play of clients and two workers upon one store: whatever can happen between them does, in random order.

::

    dispatch · send again · cancel, retry, rerun · pause, resume, change a capacity · claim · run, settle · settle
    late · give back · renew · recover · expire · tend · a worker vanishes · time passes

It needs no processes: a run is a few marks in one step. On a clock that a test moves it takes milliseconds, on a real
one it can be killed anywhere. A worker here does what a real one does: it begins nothing whose lease is nearly over.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from runwick.contracts.activity import Mark as BegunMark
from runwick.contracts.attempts import Attempt
from runwick.contracts.controls import ControlAction, ControlCommand, JobTarget, SteerAction, SteerCommand
from runwick.contracts.dispatching import Command, Receipt
from runwick.contracts.errors import RunwickError
from runwick.contracts.history import JobEvent
from runwick.contracts.limits import Fence, LimitKind
from runwick.contracts.outcomes import Death, Outcome, OutcomeKind, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState
from runwick.contracts.usage import Usage
from runwick.policy import recover as recovery
from runwick.policy import settle as policy
from tests.chaos.book import Book
from tests.chaos.history import Mark
from tests.chaos.needs import KINDS, LANES, QUEUES, some_needs, some_steering
from tests.conformance.ground import APPLICATION, LARGE, Bench, held

LEASE_MS: Final = 200
_MARGIN_MS: Final = 60
_RUN_MAX_MS: Final = 12
_ENDS: Final = (
    OutcomeKind.SUCCEEDED,
    OutcomeKind.SUCCEEDED,
    OutcomeKind.FAILED,
    OutcomeKind.FAILED,
    OutcomeKind.CRASHED,
    OutcomeKind.CRASHED,
    OutcomeKind.TIMED_OUT,
    OutcomeKind.INTERRUPTED,
    OutcomeKind.FAILED_PERMANENTLY,
    OutcomeKind.CANCELLED,
)


class Holding(NamedTuple):
    """An attempt as its worker has it."""

    attempt: Attempt
    until_ms: int
    """When its lease ends, as far as the worker knows."""


class Hand:
    """One worker process."""

    def __init__(self, bench: Bench, number: int) -> None:
        self.id = bench.ids.ordered()
        self.number = number
        self.held: list[Holding] = []
        self.cpu_us = 1_000


class Rehearsal:
    """One play.

    Args:
        bench: the store; its clock says whether time passes by itself.
        seed: of everything that happens.
        book: for what clients ask.
        marked: takes the marks of runs.
        page: how many events are read at once.
        steered: whether operators pause queues and change capacities, and what is called in and not claimed then is
            swept up. Without that, no job may ever need the sweep.
    """

    def __init__(
        self,
        bench: Bench,
        seed: int,
        book: Book,
        marked: Callable[[Mark], None],
        page: int = 3,
        *,
        steered: bool = True,
    ) -> None:
        self.bench = bench
        self.book = book
        self.marked = marked
        self.dice = random.Random(seed)
        self.known: list[bytes] = []
        """Jobs that clients know of."""
        self.claimed_at_ms: dict[bytes, int] = {}
        self.followed: list[JobEvent] = []
        self.declared_lost: set[bytes] = set()
        self._page = page
        self._cursor: str | None = None
        self._numbers = 0
        self._hands = [self._hand(), self._hand()]
        self._late: list[Settlement] = []
        """Ends that are still on their way."""
        self._ghosts: list[Attempt] = []
        """Attempts whose worker is gone or was told that they are lost."""
        self._sent: list[tuple[Literal["dispatch", "batch"], list[Command]]] = []
        self._ordered: list[ControlCommand] = []
        self._steered: list[SteerCommand] = []
        self._steers = steered
        self._highest: dict[str, int] = {}
        """The highest token that each resource has seen."""

    def fraction(self) -> float:
        """As the policies' dice."""
        return self.dice.random()

    def play(self, steps: int) -> None:
        acts = {
            self.dispatch: 5,
            self.dispatch_again: 2,
            self.control: 6,
            self.control_again: 2,
            self.claim: 8,
            self.run: 14,
            self.settle_late: 3,
            self.give_back: 2,
            self.renew: 4,
            self.tell_late: 2,
            self.recover: 3,
            self.expire: 2,
            self.vanish: 1,
            self.follow: 4,
            self.pass_time: 6,
        }
        if self._steers:
            acts |= {self.steer: 3, self.steer_again: 1, self.tend: 1}
        for _ in range(steps):
            self.dice.choices(list(acts), list(acts.values()))[0]()

    def rest(self) -> None:
        """Let everything come to an end. What stands in the lines of paused queues is the sweep's, once they are open
        again; after that nothing is."""
        if self._steers:
            for queue in QUEUES:
                self._steer(SteerAction.RESUME, LimitKind.QUEUE, queue)
            self.tend()
        for _ in range(2_000):
            self.recover()
            self.expire()
            self.claim(free=20)
            while any(hand.held for hand in self._hands):
                self.run(OutcomeKind.SUCCEEDED)
            self.settle_late()
            outlook = self.bench.run(self.bench.store.outlook(APPLICATION, LANES, KINDS))
            if not outlook.due + outlook.later + outlook.leased:
                break
            self.bench.clock.advance_ms(10)
        self.follow()

    def dispatch(self) -> None:
        dice = self.dice
        count = dice.choice([1, 1, 1, 3, 4])
        commands = [
            self.bench.command(
                **some_needs(dice),
                policy=JobPolicy(
                    max_executions=dice.choice([1, 2, 3, 4, 5]),
                    max_crashes=dice.choice([1, 2, 2, 2]),
                    max_unstarted=2,
                    retry_initial_ms=20,
                    retry_max_ms=60,
                    unstarted_initial_ms=10,
                    unstarted_max_ms=20,
                ),
                payload=LARGE if dice.random() < 0.1 else b"{}",
                delay_ms=dice.choice([None, None, None, 30]),
                expires_in_ms=dice.choice([None, None, 40, 120]),
                deadline_ms=self._now_ms() + (-1 if dice.random() < 0.05 else 60_000),
            )
            for _ in range(count)
        ]
        self._sent.append(("dispatch" if count == 1 else "batch", commands))
        self._dispatch(*self._sent[-1], apart=dice.random() < 0.5)

    def dispatch_again(self) -> None:
        if self._sent:
            self._dispatch(*self.dice.choice(self._sent[-12:]), apart=self.dice.random() < 0.5)

    def _dispatch(self, act: Literal["dispatch", "batch"], commands: list[Command], *, apart: bool) -> None:
        """`apart`: what meets a conflict fails alone."""
        call = self.book.dispatch(act, commands, self._now_ms())
        try:
            answers = self.bench.run(self.bench.store.dispatch(commands, continue_on_conflict=apart))
        except RunwickError as error:
            self.book.failed(call, error, self._now_ms())
            return
        if self.dice.random() < 0.1:
            self.book.unknown(call, self._now_ms())
            self._dispatch(act, commands, apart=apart)
            return
        self.book.confirmed(call, answers, self._now_ms())
        jobs = [answer.job for answer in answers if isinstance(answer, Receipt)]
        self.known = list(dict.fromkeys([*self.known, *jobs]))

    def control(self, job_id: bytes | None = None) -> None:
        """Cancel, retry or rerun a job, as it stands or as it stood."""
        job_id = job_id or self._some_job()
        record = None if job_id is None else self.bench.run(self.bench.store.job(APPLICATION, job_id))
        if job_id is None or record is None:
            return
        action = ControlAction.CANCEL
        if record.state.terminal and self.dice.random() < 0.9:
            action = ControlAction.RERUN if record.state is JobState.SUCCEEDED else ControlAction.RETRY
        stale = self.dice.choice([0, 0, 0, 0, 1])
        target = JobTarget(job_id, record.generation, max(1, record.revision - stale))
        self._ordered.append(self.bench.order(action, target, reason="rehearsal"))
        self._control(self._ordered[-1])

    def control_again(self) -> None:
        if self._ordered:
            self._control(self.dice.choice(self._ordered[-4:]))

    def _control(self, command: ControlCommand) -> None:
        call = self.book.order(command, self._now_ms())
        try:
            reply = self.bench.control(command)
        except RunwickError as error:
            self.book.failed(call, error, self._now_ms())
            return
        self.book.replied(call, reply, self._now_ms())

    def steer(self) -> None:
        """Pause or resume a queue or change a capacity, as it stands or as it stood."""
        action, kind, key, capacity = some_steering(self.dice)
        self._steer(action, kind, key, capacity=capacity, stale=self.dice.random() < 0.1)

    def _steer(
        self, action: SteerAction, kind: LimitKind, key: str, *, capacity: int | None = None, stale: bool = False
    ) -> None:
        store = self.bench.store
        if kind is LimitKind.QUEUE and action is not SteerAction.SET_CAPACITY:
            records = [(each.queue, each.revision) for each in self.bench.run(store.queues(APPLICATION))]
        else:
            records = [(each.key, each.revision) for each in self.bench.scopes(kind)]
        revision = dict(records).get(key, 0)
        self._steered.append(
            self.bench.steering(action, kind, key, capacity=capacity, expected_revision=max(0, revision - stale))
        )
        self._send_steering(self._steered[-1])

    def steer_again(self) -> None:
        if self._steered:
            self._send_steering(self.dice.choice(self._steered[-4:]))

    def _send_steering(self, command: SteerCommand) -> None:
        call = self.book.order(command, self._now_ms())
        self.book.steered(call, self.bench.steer(command), self._now_ms())

    def claim(self, free: int = 3) -> None:
        hand = self.dice.choice(self._hands)
        now_ms = self._now_ms()
        claim = self.bench.claim(lanes=LANES, kinds=KINDS, worker=hand.id, free=free, lease_ms=LEASE_MS)
        for attempt in claim.attempts:
            self.claimed_at_ms[attempt.attempt_id] = self._now_ms()
            hand.held.append(Holding(attempt, now_ms + LEASE_MS))

    def run(self, end: OutcomeKind | None = None) -> None:
        """One run from its first mark to its end, and what is told of it."""
        hand = self.dice.choice(self._hands)
        if not hand.held:
            return
        attempt, until_ms = hand.held.pop(self.dice.randrange(len(hand.held)))
        if until_ms < self._now_ms() + _MARGIN_MS:
            self._lose(attempt)
            return
        begun = self.bench.begin(attempt).attempt if not attempt.begun else attempt
        if begun is None:
            return
        kind = end or self.dice.choice(_ENDS)
        begun_at_ms, cpu_us = self._now_ms(), hand.cpu_us
        self._mark(hand, begun, "begin", begun.fences)
        for fence in begun.fences:
            self._use(hand, begun, fence)
        self._pass(_RUN_MAX_MS // 3)
        if self.dice.random() < 0.3:
            self.bench.renew(marks=[BegunMark(begun.job, begun.claim_token, begun_at_ms)])
        if end is None and self.dice.random() < 0.3:
            self.control(begun.job_id)
        self._pass(_RUN_MAX_MS // 3)
        self._mark(hand, begun, "end" if kind is OutcomeKind.SUCCEEDED else "on")
        death = Death("signal", signal=9, phase="handle") if kind is OutcomeKind.CRASHED else None
        usage = Usage(cpu_user_us=hand.cpu_us - cpu_us, cpu_system_us=0, rss_peak_bytes=1 << 20)
        code = None if kind is OutcomeKind.SUCCEEDED else kind.value
        outcome = Outcome(kind, code=code, usage=usage, begun_at_ms=begun_at_ms, death=death)
        settlement = policy.settle(begun, outcome, self)
        if end is None and self.dice.random() < 0.2:
            self._late.append(settlement)
        else:
            self.settle(settlement)

    def settle(self, settlement: Settlement) -> None:
        """Send the end of a run, now and then twice, as when the answer was lost."""
        self.bench.run(self.bench.store.settle([settlement]))
        if self.dice.random() < 0.2:
            self._pass(5)
            self.bench.run(self.bench.store.settle([settlement]))

    def settle_late(self) -> None:
        if self._late:
            self.settle(self._late.pop(self.dice.randrange(len(self._late))))

    def give_back(self) -> None:
        hand = self.dice.choice(self._hands)
        if hand.held:
            attempt = hand.held.pop().attempt
            self.book.given_back([attempt])
            self.bench.release(attempt)

    def renew(self) -> None:
        hand = self.dice.choice(self._hands)
        now_ms = self._now_ms()
        report = self.bench.report()
        leases = held(*(holding.attempt for holding in hand.held))
        beat = self.bench.run(self.bench.store.renew(report, leases, LEASE_MS, 1_000))
        kept = [holding for holding in hand.held if holding.attempt.job not in beat.lost]
        for holding in hand.held:
            if holding.attempt.job in beat.lost:
                self._lose(holding.attempt)
        hand.held = [holding._replace(until_ms=now_ms + LEASE_MS) for holding in kept]

    def tell_late(self) -> None:
        """Begun marks and ends of attempts that are no longer their worker's."""
        for ghost in self._ghosts[-3:]:
            self.bench.renew(marks=[BegunMark(ghost.job, ghost.claim_token, self.claimed_at_ms[ghost.attempt_id])])

    def recover(self) -> None:
        self.bench.run(self.bench.store.recover(APPLICATION, lambda one: recovery.recover(one, self), 100))

    def expire(self) -> None:
        self.bench.run(self.bench.store.expire(APPLICATION, 100))

    def tend(self) -> None:
        """Look through all limits once."""
        self.bench.tend()

    def vanish(self) -> None:
        """A worker dies with all that it holds; another one is started, which may know of that."""
        place = self.dice.randrange(len(self._hands))
        dead, self._hands[place] = self._hands[place], self._hand()
        self._ghosts += [holding.attempt for holding in dead.held]
        if self.dice.random() < 0.5:
            store = self.bench.store
            act = store.recover(APPLICATION, lambda one: recovery.recover_from_dead(one, self), 100, worker=dead.id)
            self.bench.run(act)

    def follow(self) -> None:
        """Read what has happened since, page by page."""
        events = self.bench.events(after=self._cursor, limit=self._page)
        self.followed += events
        self._cursor = events[-1].cursor if events else self._cursor

    def pass_time(self) -> None:
        self._pass(self.dice.choice([1, 5, 20, 60, LEASE_MS]))

    def _pass(self, most_ms: int) -> None:
        self.bench.clock.advance_ms(self.dice.randint(1, most_ms))

    def _lose(self, attempt: Attempt) -> None:
        self.declared_lost.add(attempt.attempt_id)
        self._ghosts.append(attempt)

    def _use(self, hand: Hand, attempt: Attempt, fence: Fence) -> None:
        """Show the resource a token; it remembers the highest."""
        accepts = fence.value >= self._highest.get(fence.scope, 0)
        if accepts:
            self._highest[fence.scope] = fence.value
        self._mark(hand, attempt, "accepted" if accepts else "refused", [fence])

    def _mark(
        self,
        hand: Hand,
        attempt: Attempt,
        step: Literal["begin", "on", "end", "accepted", "refused"],
        fences: Sequence[Fence] = (),
    ) -> None:
        mark = Mark(
            job_id=attempt.job_id,
            attempt_id=attempt.attempt_id,
            generation=attempt.generation,
            step=step,
            pid=hand.number,
            born=int.from_bytes(hand.id[9:]),
            at_ns=round(self.bench.clock.steady_s() * 1e9),
            at_ms=self._now_ms(),
            cpu_us=hand.cpu_us,
            fences=fences,
        )
        hand.cpu_us += 100
        self.marked(mark)

    def _hand(self) -> Hand:
        self._numbers += 1
        return Hand(self.bench, self._numbers)

    def _some_job(self) -> bytes | None:
        return self.dice.choice(self.known[-8:]) if self.known else None

    def _now_ms(self) -> int:
        return self.bench.clock.now_ms()
