"""Runs the attempts of one pool on forked executors, each at most once.

    hand_over ─▶ placement ─▶ executor ─┬─ ends ─▶ completed
                   ▲  │                 └─ dies ─▶ what it left is killed ─▶ completed: crashed, or stopped by force
                   │  └─ nobody within 100 ms ─▶ unstarted           │
                   └──── what it had not taken ◀─────────────────────┘

The backend hears the executors and keeps the time; `placement` decides who gets what, `seats` who lives, `overseeing`
who must end. It knows no store: what it cannot run goes back through the sink.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from runwick.config.options import ExecutorOptions
from runwick.contracts.activity import ExecutorActivity, Mark
from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt
from runwick.contracts.backends import Completion, Room, Sink
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.contracts.health import RoleHealth
from runwick_supervisor.activity import activity_of, health_of, mark_of
from runwick_supervisor.autopsy import event_of_death, verdict_of
from runwick_supervisor.completions import CompletionBells
from runwick_supervisor.deaths import Books, OomWitness, completions
from runwick_supervisor.events import EventKind, ExecutorEvent, ignore
from runwick_supervisor.executor import Executor
from runwick_supervisor.expectations import Expectations
from runwick_supervisor.held import Held
from runwick_supervisor.overseeing import Overseer
from runwick_supervisor.placement import REFILL_MS, WAIT_MAX_S, Placement
from runwick_supervisor.processes import Ending
from runwick_supervisor.rounds import Rounds
from runwick_supervisor.seats import Seats
from runwick_supervisor.zygote_handle import Zygote

ATTEMPTS_MAX: Final = 512
"""Attempts in the hand-off of one worker beyond those that run."""
PAYLOADS_MAX_BYTES: Final = 16 * 1024 * 1024

_WATCH_MIN_S: Final = 0.01
_WATCH_MAX_S: Final = 0.08
"""While anything waits, the next look is when executors want to be refilled, within these bounds after the last one."""
_LOW_MS: Final = 1.1 * REFILL_MS
"""An executor with no more to do than this may be refilled: whoever looks when it has little left comes in time."""
_UNHURRIED_MS: Final = 1000 * _WATCH_MIN_S
"""An executor with so much to do needs nobody to hear of each end: the next look comes before it runs dry."""
_MANY: Final = 8
"""So many short runs that were handed over at once may be heard of a moment later than each of them ends."""
_FAILED_BOOTS_MAX: Final = 3
_NEVER: Final = math.inf


class ExecutorBackend:
    """Implements `runwick.contracts.backends.Backend` for one pool.

    Args:
        zygote: has booted; it may serve several backends, and whoever booted it stops it after them.
        pool: the pool's name, for messages.
        executors: how many processes.
        clock: for the times in outcomes.
        record_usage: whether outcomes say what the attempt cost.
        options: how the executors are kept.
        cancellation_grace_s: how long a run over its time limit may take to end.
        cleanup_budget_s: how long the closing of its providers may take after that, or at all.
        fence_margin_s: how long after the local deadline of its lease a run is killed, whatever the parent does.
        first_executor: the number of the first executor; numbers are unique in a worker.
        attempts_max, payloads_max_bytes: what may wait behind running attempts. Pools share the worker's.
        on_event: hears of births and deaths, on the event loop.
    """

    name = "executors"

    def __init__(
        self,
        zygote: Zygote,
        pool: str,
        executors: int,
        clock: Clock,
        record_usage: bool,
        *,
        options: ExecutorOptions,
        cancellation_grace_s: float,
        cleanup_budget_s: float,
        fence_margin_s: float,
        first_executor: int = 1,
        attempts_max: int = ATTEMPTS_MAX,
        payloads_max_bytes: int = PAYLOADS_MAX_BYTES,
        on_event: Callable[[ExecutorEvent], None] = ignore,
    ) -> None:
        self._zygote = zygote
        self._pool = pool
        self.numbers = list(range(first_executor, first_executor + executors))
        """Of its executors' places; they come and go when it is renewed."""
        self._clock = clock
        self._record_usage = record_usage
        self._options = options
        self._cancellation_grace_s = cancellation_grace_s
        self._cleanup_budget_s = cleanup_budget_s
        self._fence_margin_s = fence_margin_s
        self._attempts_max = attempts_max
        self._payloads_max_bytes = payloads_max_bytes
        self._on_event = on_event
        self._expectations = Expectations()
        self._witness = OomWitness()
        self._dying = 0
        """Attempts whose executor is dead and whose leavings are being killed."""
        self._payload_bytes = 0
        self._burials: set[asyncio.Task[None]] = set()
        self._watch: asyncio.TimerHandle | None = None
        self._looked_s = 0.0
        """When everybody was last looked at, on the loop's clock."""
        self._is_looking = False
        """Whether that is under way, after which the next look is set anyway."""

    async def start(self, sink: Sink) -> None:
        """Bring the executors up.

        Raises:
            ConfigurationError: they were not ready in time (``boot_timeout``); none is left.
        """
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._bells = CompletionBells(self._collect, self._nobody_waits)
        self._seats = Seats(
            self._zygote,
            self.numbers,
            record_usage=self._record_usage,
            options=self._options,
            bells=self._bells,
            arrived=self._arrived,
            died=self._died,
            failed=sink.failed,
            on_event=self._on_event,
        )
        self._placement = Placement(self._seats.living, self._expectations, self._attempts_max)
        self._overseer = Overseer(
            cancellation_grace_s=self._cancellation_grace_s,
            cleanup_budget_s=self._cleanup_budget_s,
            single_out=self._single_out,
            asked=sink.asked,
            looked=sink.looked,
        )
        self._rounds = Rounds(
            self._seats,
            self._overseer,
            self._witness,
            self._options,
            self._fence_margin_s,
            self._arm_watch,
            self._zygote.family.bury_strangers,
            self._on_event,
        )
        self._zygote.keep()
        self._zygote.on_failed_boot.append(self._zygote_failed)
        try:
            await self._seats.fill()
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                raise ConfigurationError([Problem("boot_timeout", f"pool {self._pool}", str(error))]) from None
            raise

    # What the engine asks ---------------------------------------------------------------------------------------

    def room(self) -> Room:
        free, ahead, capacity, least_ms = self._placement.slack(self._loop.time())
        payload_bytes = max(0, self._payloads_max_bytes - self._payload_bytes)
        worthwhile = payload_bytes > 0 and (free > 0 or (0 < capacity <= 2 * ahead and least_ms <= _LOW_MS))
        return Room(free=free, ahead=ahead, payload_bytes=payload_bytes, worthwhile=worthwhile)

    def hand_over(self, attempts: Sequence[Attempt], deadline_s: float) -> None:
        now_s = self._loop.time()
        self._payload_bytes += _payload_bytes(attempts)
        if not self._placement.needs_watching:
            self._looked_s = now_s  # nobody has waited for a look
        self._placement.take_in(attempts, now_s, deadline_s + self._fence_margin_s)
        if self._watch is not None and self._watch.when() > now_s + _WATCH_MIN_S:
            self._disarm_watch()  # whoever was about to run dry has something now; what is due at once stays so
        self._place(now_s)
        typical_ms = self._expectations.typical_ms
        if typical_ms is not None and len(attempts) >= _MANY:
            self._bells.foresee(len(self._seats.living) / typical_ms)

    def extend(self, deadlines_s: Mapping[bytes, float]) -> None:
        for held in self._all_held():
            deadline_s = deadlines_s.get(held.attempt.attempt_id)
            if deadline_s is not None:
                held.fenced_s = deadline_s + self._fence_margin_s
        for executor in self._seats.living.values():
            executor.refence()

    def take_back(self) -> Sequence[Attempt]:
        for executor in self._seats.living.values():
            self._placement.strand(executor.take_back(), self._loop.time())
        given_up = self._let_go(self._placement.give_up(_all))
        self._look()  # whoever was at rest has one run left, and is heard when that ends
        return given_up

    def next_completion_ms(self) -> float | None:
        now_s = self._loop.time()
        heads = [executor.head_left_ms(now_s) for executor in self._seats.living.values() if executor.held]
        if not heads:
            return None
        heard_ms = (self._watch.when() - now_s) * 1000 if self._bells.rest and self._watch is not None else 0.0
        return max(min(heads), heard_ms)

    def running(self) -> int:
        return sum(1 for _ in self._all_held()) + self._dying

    def ask(self, attempts: Sequence[Attempt] | None, cause: CancellationCause, within_s: float) -> None:
        wanted = None if attempts is None else {attempt.attempt_id for attempt in attempts}

        def is_wanted(held: Held) -> bool:
            return wanted is None or held.attempt.attempt_id in wanted

        now_s = self._loop.time()
        if attempts is None and cause is CancellationCause.SHUTDOWN:
            self._seats.filling = False
            if within_s <= 0:  # also while they end, or have ended, since the other pools have not
                self._seats.hurry()
        concerned = [executor for executor in self._seats.living.values() if any(map(is_wanted, executor.held))]
        for executor in concerned:
            self._placement.strand(executor.take_back(), now_s)
        self._give_up(is_wanted)
        for executor in concerned:
            # What is left it has taken: whatever stands before the last of that has ended, unheard yet.
            if executor.held and is_wanted(executor.held[-1]):
                self._overseer.ask(executor, executor.held[-1].attempt.attempt_id, cause, now_s, within_s)
        self._look()

    def doing(self) -> Sequence[ExecutorActivity]:
        now_ms = self._clock.now_ms()
        return [
            activity_of(
                number,
                self._pool,
                self._seats.living.get(number),
                now_ms,
                self._seats.restarts.get(number, 0),
                self._seats.restarted_for.get(number),
            )
            for number in self.numbers
        ]

    def marks(self) -> Sequence[Mark]:
        now_ms = self._clock.now_ms()
        marks = [mark_of(executor, now_ms) for executor in self._seats.living.values()]
        return [mark for mark in marks if mark is not None]

    def look(self, attempt_ids: Sequence[bytes]) -> None:
        now_s = self._loop.time()
        for executor in self._seats.living.values():
            if executor.held and executor.held[0].attempt.attempt_id in attempt_ids:
                self._overseer.look(executor, now_s)
        self._arm_watch(now_s)

    def health(self) -> RoleHealth:
        return health_of(self._pool, self._seats.ready, len(self.numbers), self._seats.missing_for_s())

    def renew(
        self,
        zygote: Zygote,
        executors: int,
        numbers: Sequence[int] = (),
        *,
        attempts_max: int = ATTEMPTS_MAX,
        payloads_max_bytes: int = PAYLOADS_MAX_BYTES,
    ) -> None:
        """Go on with so many executors of this zygote, which has booted: each place is taken by one as soon as its
        executor is free. No more of them work than before or than `executors`, whichever is more.

        Args:
            numbers: of the places to be added, as many as there are too few.
        """
        self._payloads_max_bytes = payloads_max_bytes
        self._placement.ahead_max = attempts_max
        self._zygote.on_failed_boot.remove(self._zygote_failed)
        self._zygote = zygote
        zygote.keep()
        zygote.on_failed_boot.append(self._zygote_failed)
        self._seats.renew(zygote, executors, numbers)

    def dwindle(self) -> None:
        """Take no more work: every executor ends as soon as it is free, and none is replaced."""
        self._seats.renew(self._zygote, 0, ())

    async def stop(self) -> None:
        await self._seats.empty()
        self._give_up(_all)
        if self._burials:
            await asyncio.wait(self._burials)
        await self._zygote.sweep()
        self._zygote.on_failed_boot.remove(self._zygote_failed)
        self._bells.close()
        self._rounds.close()
        self._disarm_watch()

    # What the executors say -------------------------------------------------------------------------------------

    def _collect(self, executors: Iterable[Executor]) -> int:
        ended: list[Completion] = []
        now_s = self._loop.time()
        for executor in executors:
            executor.collect(ended, self._expectations, now_s)
            self._check(executor)
            self._rounds.collected(executor, now_s)
        if ended:
            self._payload_bytes -= sum([completion.attempt.payload_bytes for completion in ended])
            if len(self._placement):
                self._place(now_s)
            elif not self._is_looking:
                self._arm_watch(now_s)
            self._sink.completed(ended)
        return len(ended)

    def _single_out(self, executor: Executor) -> None:
        """Leave it nothing but the one run that it is at, if it is at one."""
        self._placement.strand(executor.take_back(), self._loop.time())
        if executor.violation is None:
            self._collect([executor])

    def _arrived(self) -> None:
        self._place(self._loop.time())
        self._sink.room_changed()

    def _died(self, executor: Executor, ending: Ending, books: Books | None) -> None:
        """Sort out what it held: ended, begun, or not begun."""
        if executor.violation is None:
            self._collect([executor])
        self._overseer.forget(executor)
        verdict = verdict_of(executor, ending, self._witness)
        executor.unfence()
        victims = completions(
            executor.leavings(),
            verdict,
            ending,
            books,
            now_ms=self._clock.now_ms(),
            record_usage=self._record_usage,
        )
        self._dying += len(victims)
        if (event := event_of_death(executor, verdict, ending, victims)) is not None:
            self._on_event(event)
        self._placement.strand(executor.held, self._loop.time())
        if not self._seats.filling:
            self._give_up(_all)
        burial = self._loop.create_task(self._bury(victims))
        self._burials.add(burial)
        burial.add_done_callback(self._burials.discard)
        self._place(self._loop.time())
        self._sink.room_changed()

    async def _bury(self, victims: list[Completion]) -> None:
        """Report the ends of what a dead executor had taken, when nothing that it started lives any more."""
        await self._zygote.sweep()
        self._dying -= len(victims)
        if victims:
            self._payload_bytes -= _payload_bytes(completion.attempt for completion in victims)
            self._sink.completed(victims)

    def _zygote_failed(self, reason: str, is_final: bool) -> None:
        if is_final or (self._zygote.failed_boots >= _FAILED_BOOTS_MAX and not self._seats.any_can_work):
            self._sink.failed(reason)

    # Who waits ---------------------------------------------------------------------------------------------------

    def _place(self, now_s: float) -> None:
        given = self._placement.place(now_s)
        for executor in given:
            self._check(executor)
        if given:
            self._rounds.hasten(now_s)
        self._arm_watch(now_s)

    def _arm_watch(self, now_s: float) -> None:
        """Look in a moment while anything waits, otherwise when the next one must be attended to."""
        due_s = min([self._overseer.due_s(executor, now_s) for executor in self._seats.living.values()], default=_NEVER)
        if self._placement.needs_watching or self._bells.rest:  # at rest nobody is heard until the next look
            refill_s = self._placement.refill_s(now_s)
            latest_s = min(self._looked_s + _WATCH_MAX_S, refill_s, self._placement.patience_s())
            due_s = min(due_s, max(self._looked_s + _WATCH_MIN_S, latest_s))
        if due_s == _NEVER:
            return
        if self._watch is not None:
            if self._watch.when() <= due_s:
                return
            self._watch.cancel()
        self._watch = self._loop.call_at(due_s, self._look)

    def _disarm_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _look(self) -> None:
        """Nobody waits behind a long run, nobody waits here for long, and nobody runs for longer than it may."""
        self._disarm_watch()
        self._looked_s = self._loop.time()
        self._is_looking = True
        try:
            self._bells.look()
        finally:
            self._is_looking = False
        now_s = self._loop.time()
        for executor in list(self._seats.living.values()):
            self._overseer.attend(executor, now_s)
        self._placement.unblock(now_s)
        if len(self._placement):
            self._place(now_s)
            self._give_up(lambda held: now_s - held.waits_since_s >= WAIT_MAX_S)
        else:
            self._arm_watch(now_s)

    def _nobody_waits(self) -> bool:
        """Whether every executor has work for longer than it takes until the next look."""
        living, now_s = self._seats.living.values(), self._loop.time()
        return bool(living) and all(
            len(e.held) > 1 and e.takes_work and not e.stuck and e.left_ms(now_s) >= _UNHURRIED_MS for e in living
        )

    def _all_held(self) -> Iterable[Held]:
        for executor in self._seats.living.values():
            yield from executor.held
        yield from self._placement.waiting()

    def _give_up(self, wanted: Callable[[Held], bool]) -> None:
        given_up = self._placement.give_up(wanted)
        if given_up:
            self._sink.unstarted(self._let_go(given_up))
            self._sink.room_changed()

    def _let_go(self, held: Iterable[Held]) -> list[Attempt]:
        attempts = [one.attempt for one in held]
        self._payload_bytes -= _payload_bytes(attempts)
        return attempts

    def _check(self, executor: Executor) -> None:
        """Hear no more of one that is condemned."""
        if executor.violation is not None and self._bells.remove(executor):
            self._tell(EventKind.EXECUTOR_CONDEMNED, executor, f"is killed for what it wrote: {executor.violation}")
            self._arm_watch(self._loop.time())

    def _tell(self, kind: EventKind, executor: Executor, text: str, attempt: Attempt | None = None) -> None:
        self._on_event(ExecutorEvent(kind=kind, text=text, executor=executor.number, pid=executor.pid, attempt=attempt))


def _payload_bytes(attempts: Iterable[Attempt]) -> int:
    return sum([attempt.payload_bytes for attempt in attempts])


def _all(_: Held) -> bool:
    return True
