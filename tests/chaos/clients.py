"""Clients under fire: they dispatch, cancel, retry and rerun, pause queues and change capacities, one thread each, and
keep book of what they were told. What they ask for is `tests.chaos.wishes`."""

import contextlib
import random
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Final

from runwick import Runwick
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.controls import (
    ControlAction,
    ControlCommand,
    JobTarget,
    ManagementActor,
    SteerAction,
    SteerCommand,
)
from runwick.contracts.dispatching import BatchItem, Command, Prepared, PreparedBatch, Receipt
from runwick.contracts.errors import ItemFailure, OutcomeUnknown, RunwickError
from runwick.contracts.history import JobEvent
from runwick.contracts.identity import id_text
from runwick.contracts.limits import LimitKind
from runwick.contracts.states import JobState, Priority
from tests.chaos import jobs, wishes
from tests.chaos.application import CLOCK, NAME, WATCHFUL, declare
from tests.chaos.book import Book
from tests.chaos.reading import read_events

ACTOR: Final = ManagementActor("chaos", "Chaos", "service")
WAITING: Final = 40
"""Clients dispatch while fewer jobs than this are due in the lanes…"""
_IN_LINES: Final = 40
"""…and no more limited ones while so many stand in lines: what is left in the end is to go through in a few seconds."""
_PAUSE_S: Final = 0.01
_RECENT: Final = 60
"""Controls are about the latest jobs."""


def producer(url: str) -> Runwick:
    """The application as a client has it."""
    rw = Runwick(NAME, store=url, worker=CLOCK, redis=WATCHFUL)
    declare(rw)
    return rw


def scope(rw: Runwick) -> tuple[list[Lane], frozenset[Kind]]:
    """Lanes and kinds of the application."""
    entries = [rw.catalog.by_record[record] for record in jobs.RECORDS]
    lanes = [Lane(queue, priority) for queue in jobs.QUEUES for priority in Priority]
    return lanes, frozenset(entry.kind for entry in entries)


class Client(threading.Thread):
    """One client. It goes on until it is told to stop, and then settles what it does not know.

    Args:
        rw: the application.
        seed: of what it does.
        book: where it writes that down.
    """

    def __init__(self, rw: Runwick, seed: int, book: Book) -> None:
        super().__init__(name=f"client-{seed}")
        self.failed: str | None = None
        """Its traceback, should it fail."""
        self._rw = rw
        self._dice = random.Random(seed)
        self._book = book
        self._scope = scope(rw)
        self._stops = threading.Event()
        self._rests = threading.Event()
        self._recent: list[bytes] = []
        self._sent: list[Prepared | PreparedBatch] = []
        self._ordered: list[ControlCommand] = []
        self._open_sends: list[Prepared | PreparedBatch] = []
        self._open_orders: list[ControlCommand | SteerCommand] = []
        self._steered: list[SteerCommand] = []

    def run(self) -> None:
        try:
            while not self._stops.wait(_PAUSE_S * self._dice.random()):
                if not self._rests.is_set():
                    self._act()
        except BaseException:
            self.failed = traceback.format_exc()

    def stop(self) -> None:
        self._stops.set()
        self.join()
        assert self.failed is None, self.failed

    def rest(self) -> None:
        """Ask for nothing more until `resume`, but for what it is just about to ask for."""
        self._rests.set()

    def resume(self) -> None:
        self._rests.clear()

    def settle(self) -> None:
        """Send again whatever has no answer, until everything has one; then open every queue."""
        for sends in (self._open_sends, self._open_orders):
            while sends:
                self._again(sends.pop())
                time.sleep(_PAUSE_S)
        store = self._rw.store
        while paused := [queue.queue for queue in store.run(store.queues(NAME)) if queue.paused]:
            self._steer(SteerAction.RESUME, LimitKind.QUEUE, paused[0], None)

    def _act(self) -> None:
        with contextlib.suppress(RunwickError):  # a read: the next one comes soon
            outlook = self._rw.store.run(self._rw.store.outlook(NAME, *self._scope))
            if outlook.due - outlook.blocked < WAITING and outlook.paused < WAITING:
                self.dispatch(limited=outlook.blocked < _IN_LINES)
            throw = self._dice.random()
            if throw < 0.2:
                self._control()
            elif throw < 0.30 and self._sent:
                self._send(self._dice.choice(self._sent[-5:]))
            elif throw < 0.35 and self._ordered:
                self._order(self._dice.choice(self._ordered[-5:]))
            elif throw < 0.45:
                self._steer(*wishes.some_steering(self._dice))
            elif throw < 0.47 and self._steered:
                self._order(self._dice.choice(self._steered[-3:]))

    def _again(self, open_one: Prepared | PreparedBatch | ControlCommand | SteerCommand) -> None:
        if isinstance(open_one, (ControlCommand, SteerCommand)):
            self._order(open_one)
        else:
            self._send(open_one)

    def dispatch(self, *, limited: bool) -> None:
        """Ask for some jobs, with scopes and rates only if `limited`; the book has the answer."""
        dice = self._dice
        if dice.random() < 0.5:
            items = [BatchItem(*wishes.some_job(dice, limited=limited)) for _ in range(dice.randint(2, 12))]
            prepared: Prepared | PreparedBatch = self._rw.prepare_many(items, continue_on_conflict=dice.random() < 0.7)
        else:
            job, options = wishes.some_job(dice, limited=limited)
            prepared = self._rw.prepare(job, **wishes.as_arguments(options))
        self._sent.append(prepared)
        self._send(prepared)

    def _send(self, prepared: Prepared | PreparedBatch) -> None:
        commands: Sequence[Command] = prepared.commands if isinstance(prepared, PreparedBatch) else [prepared.command]
        call = self._book.dispatch("batch" if isinstance(prepared, PreparedBatch) else "dispatch", commands, now_ms())
        answers: list[Receipt | ItemFailure]
        try:
            if isinstance(prepared, PreparedBatch):
                items = self._rw.dispatch_prepared(prepared).items
                answers = [told for item in items if (told := item.receipt or item.failure) is not None]
            else:
                answers = [self._rw.dispatch_prepared(prepared)]
        except OutcomeUnknown:
            self._book.unknown(call, now_ms())
            self._open_sends.append(prepared)
        except RunwickError as error:
            self._book.failed(call, error, now_ms())
        else:
            self._book.confirmed(call, answers, now_ms())
            receipts = [answer.job for answer in answers if isinstance(answer, Receipt)]
            self._recent = list(dict.fromkeys([*self._recent, *receipts]))[-_RECENT:]

    def _control(self) -> None:
        """Something to one job or a few, mostly as they stand."""
        targets = []
        action = self._dice.choice([ControlAction.CANCEL, ControlAction.RETRY, ControlAction.RERUN])
        for job_id in self._dice.sample(self._recent, min(len(self._recent), 6)):
            view = self._rw.get(id_text(job_id))
            if _fits(action, view.state) or self._dice.random() < 0.1:
                stale = self._dice.random() < 0.1
                targets.append(JobTarget(job_id, view.generation, max(1, view.revision - stale)))
        if targets:
            command_id = self._rw.ids.ordered()
            command = ControlCommand(
                action=action, command_id=command_id, application=NAME, actor=ACTOR, reason=None, targets=targets[:3]
            )
            self._ordered.append(command)
            self._order(command)

    def _steer(self, action: SteerAction, kind: LimitKind, key: str, capacity: int | None) -> None:
        """A queue or a capacity as it stands, if it is there yet; now and then as it stood."""
        store = self._rw.store
        if action is SteerAction.SET_CAPACITY:
            revisions = {scope.key: scope.revision for scope in store.run(store.scopes(NAME, kind, None, 100))}
        else:
            revisions = {queue.queue: queue.revision for queue in store.run(store.queues(NAME))}
        if key in revisions:
            command = SteerCommand(
                action=action,
                command_id=self._rw.ids.ordered(),
                application=NAME,
                actor=ACTOR,
                reason=None,
                kind=kind,
                key=key,
                expected_revision=max(0, revisions[key] - (self._dice.random() < 0.1)),
                capacity=capacity,
            )
            self._steered.append(command)
            self._order(command)

    def _order(self, command: ControlCommand | SteerCommand) -> None:
        """The act itself: what the service above it repeats and how it tells has tests of its own."""
        store, book = self._rw.store, self._book
        call = book.order(command, now_ms())
        try:
            if isinstance(command, SteerCommand):
                book.steered(call, store.run(store.steer(command)), now_ms())
            else:
                book.replied(call, store.run(store.control(command)), now_ms())
        except OutcomeUnknown:
            self._book.unknown(call, now_ms())
            self._open_orders.append(command)
        except RunwickError as error:
            self._book.failed(call, error, now_ms())


class Follower(threading.Thread):
    """Reads the events page by page while everything happens."""

    def __init__(self, rw: Runwick) -> None:
        super().__init__(name="follower")
        self.events: list[JobEvent] = []
        self._rw = rw
        self._stops = threading.Event()

    def run(self) -> None:
        while not self._stops.wait(0.05):
            self.read()

    def read(self) -> None:
        after = self.events[-1].cursor if self.events else None
        with contextlib.suppress(RunwickError):
            self.events += read_events(self._rw.store, NAME, after, page=50)

    def stop(self) -> None:
        """Stop when all has been read."""
        self._stops.set()
        self.join()
        self.read()


def _fits(action: ControlAction, state: JobState) -> bool:
    """Whether a job that stands so may be treated so."""
    match action:
        case ControlAction.RETRY:
            return state in (JobState.FAILED, JobState.CANCELLED)
        case ControlAction.RERUN:
            return state is JobState.SUCCEEDED
        case _:
            return not state.terminal


def now_ms() -> int:
    return time.time_ns() // 1_000_000
