"""Clients under fire: they dispatch, cancel, retry and rerun, one thread each, and keep book of what they were told."""

import contextlib
import datetime
import random
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Final

from runwick import Runwick
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.controls import ControlAction, ControlCommand, JobTarget, ManagementActor
from runwick.contracts.dispatching import BatchItem, Command, DispatchOptions, Prepared, PreparedBatch
from runwick.contracts.errors import OutcomeUnknown, RunwickError
from runwick.contracts.history import JobEvent
from runwick.contracts.identity import id_text
from runwick.contracts.jobs import Job
from runwick.contracts.states import JobState
from tests.chaos import jobs
from tests.chaos.application import CLOCK, NAME
from tests.chaos.book import Book
from tests.chaos.jobs import Die, Fail, Wait, Work
from tests.chaos.reading import read_events

ACTOR: Final = ManagementActor("chaos", "Chaos", "service")
WAITING: Final = 40
"""Clients dispatch while fewer jobs are due than this."""
_PAUSE_S: Final = 0.01
_RECENT: Final = 60
"""Controls are about the latest jobs."""
_SHORTLY: Final = datetime.timedelta(milliseconds=40)


def producer(url: str) -> Runwick:
    """The application as a client has it."""
    rw = Runwick(NAME, store=url, worker=CLOCK)
    rw.add_jobs(jobs)
    return rw


def scope(rw: Runwick) -> tuple[list[Lane], frozenset[Kind]]:
    """Lanes and kinds of the application."""
    entries = [rw.catalog.by_record[record] for record in jobs.RECORDS]
    return sorted({entry.lane for entry in entries}), frozenset(entry.kind for entry in entries)


def some_job(dice: random.Random) -> Job:
    """What one client dispatches, mostly short work."""
    throw = dice.random()
    if throw < 0.62:
        ballast = "x" * 70_000 if dice.random() < 0.05 else ""
        return Work(milliseconds=dice.choice([0.5, 2.0, 4.0, 8.0]), leaves=dice.random() < 0.08, ballast=ballast)
    if throw < 0.85:
        return Fail(odds=dice.choice([0.1, 0.5, 1.0]))
    if throw < 0.90:
        return Die(odds=dice.choice([0.3, 1.0]), where=dice.choice(["kill", "exit", "abort"]))
    return Wait(milliseconds=dice.choice([20.0, 100.0, 300.0]), listens=dice.random() < 0.5)


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
        self._open_orders: list[ControlCommand] = []

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
        """Send again whatever has no answer, until everything has one."""
        for sends in (self._open_sends, self._open_orders):
            while sends:
                self._again(sends.pop())
                time.sleep(_PAUSE_S)

    def _act(self) -> None:
        with contextlib.suppress(RunwickError):  # a read: the next one comes soon
            outlook = self._rw.store.run(self._rw.store.outlook(NAME, *self._scope))
            if outlook.due < WAITING:
                self._dispatch()
            throw = self._dice.random()
            if throw < 0.2:
                self._control()
            elif throw < 0.30 and self._sent:
                self._send(self._dice.choice(self._sent[-5:]))
            elif throw < 0.35 and self._ordered:
                self._order(self._dice.choice(self._ordered[-5:]))

    def _again(self, open_one: Prepared | PreparedBatch | ControlCommand) -> None:
        if isinstance(open_one, ControlCommand):
            self._order(open_one)
        else:
            self._send(open_one)

    def _dispatch(self) -> None:
        dice = self._dice
        if dice.random() < 0.5:
            options = DispatchOptions(expires_at=dice.choice([None, None, None, _SHORTLY]))
            items = [BatchItem(some_job(dice), options) for _ in range(dice.randint(2, 12))]
            prepared: Prepared | PreparedBatch = self._rw.prepare_many(items)
        else:
            prepared = self._rw.prepare(some_job(dice), not_before=dice.choice([None, None, _SHORTLY]))
        self._sent.append(prepared)
        self._send(prepared)

    def _send(self, prepared: Prepared | PreparedBatch) -> None:
        commands: Sequence[Command] = prepared.commands if isinstance(prepared, PreparedBatch) else [prepared.command]
        call = self._book.dispatch("batch" if isinstance(prepared, PreparedBatch) else "dispatch", commands, now_ms())
        try:
            receipts = (
                self._rw.dispatch_prepared(prepared).receipts
                if isinstance(prepared, PreparedBatch)
                else [self._rw.dispatch_prepared(prepared)]
            )
        except OutcomeUnknown:
            self._book.unknown(call, now_ms())
            self._open_sends.append(prepared)
        except RunwickError as error:
            self._book.failed(call, error.code, now_ms())
        else:
            self._book.confirmed(call, [receipt.job for receipt in receipts], now_ms())
            known = dict.fromkeys([*self._recent, *(receipt.job for receipt in receipts)])
            self._recent = list(known)[-_RECENT:]

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

    def _order(self, command: ControlCommand) -> None:
        """The act itself: what the service above it repeats and how it tells has tests of its own."""
        call = self._book.control(command, now_ms())
        try:
            reply = self._rw.store.run(self._rw.store.control(command))
        except OutcomeUnknown:
            self._book.unknown(call, now_ms())
            self._open_orders.append(command)
        except RunwickError as error:
            self._book.failed(call, error.code, now_ms())
        else:
            self._book.replied(call, reply, now_ms())


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
