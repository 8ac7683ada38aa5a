"""Executors for tests: a zygote, a backend and a sink that keeps what it is told."""

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil

from runwick import Job, Runwick
from runwick.config.options import ExecutorOptions
from runwick.contracts.activity import StackAnswer
from runwick.contracts.attempts import Attempt
from runwick.contracts.backends import Completion
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.outcomes import Outcome
from runwick.runtime.ambient import SystemClock
from runwick_supervisor.backend import ExecutorBackend
from runwick_supervisor.events import EventKind, ExecutorEvent
from runwick_supervisor.executor import Executor
from runwick_supervisor.zygote_handle import Zygote
from tests.attempts import an_attempt
from tests.supervisor.applications import deeds

ROOT = Path(__file__).parents[2]
DEEDS = "tests.supervisor.applications.deeds"
DEADLINE_S = 20.0
LEASE_S = 60.0
GRACE_S = 0.2


class Crew:
    """Implements `runwick.contracts.backends.Sink`."""

    def __init__(self, application: Runwick = deeds.rw, zygote: Zygote | None = None) -> None:
        self.application = application
        self.outcomes: dict[int, list[Outcome]] = {}
        """By job number: what it was told, each time."""
        self.given_back: list[int] = []
        self.overdue: list[tuple[int, CancellationCause]] = []
        """Job numbers of what was asked to stop without being told to."""
        self.events: list[ExecutorEvent] = []
        self.failures: list[str] = []
        self.stacks: list[StackAnswer] = []
        self.zygote = zygote or Zygote(self.events.append)
        self.backend: ExecutorBackend
        self._number = 0

    def completed(self, completions: Sequence[Completion]) -> None:
        for completion in completions:
            self.outcomes.setdefault(completion.attempt.job, []).append(completion.outcome)

    def unstarted(self, attempts: Sequence[Attempt]) -> None:
        self.given_back += [attempt.job for attempt in attempts]

    def gave_up(self, attempts: Sequence[Attempt]) -> None:
        raise AssertionError("executors can be stopped")

    def asked(self, attempt: Attempt, cause: CancellationCause) -> None:
        self.overdue.append((attempt.job, cause))

    def looked(self, answer: StackAnswer) -> None:
        self.stacks.append(answer)

    def room_changed(self) -> None: ...

    def failed(self, reason: str) -> None:
        self.failures.append(reason)

    # What tests do -----------------------------------------------------------------------------------------------

    @property
    def executors(self) -> list[Executor]:
        """The living, by their numbers."""
        return [executor for _, executor in sorted(self.backend._seats.living.items())]

    def attempt(self, job: Job) -> Attempt:
        """A begun attempt of this job, numbered on."""
        entry = self.application.catalog.by_record[type(job)]
        payload = entry.codec.encode(job)
        self._number += 1
        return an_attempt(self._number, kind=entry.kind, payload=payload, payload_bytes=len(payload))

    def give(self, *attempts: Attempt, lease_s: float = LEASE_S) -> None:
        """Hand these over, with leases that last so long."""
        self.backend.hand_over(attempts, asyncio.get_running_loop().time() + lease_s)

    def hand_over(self, *jobs: Job) -> list[int]:
        """Hand these over; answers their numbers."""
        attempts = [self.attempt(job) for job in jobs]
        self.give(*attempts)
        return [attempt.job for attempt in attempts]

    async def run(self, *jobs: Job) -> list[Outcome]:
        """Hand these over and wait for their outcomes. What is given back, since for 100 ms nobody was free, is handed
        over anew, as by a worker that claims it again."""
        numbers = self.hand_over(*jobs)
        while True:
            await until(lambda: {*numbers} <= {*self.outcomes, *self.given_back}, f"{jobs} to end")
            back = [place for place, number in enumerate(numbers) if number in self.given_back]
            if not back:
                return [self.outcomes[number][0] for number in numbers]
            for place in back:
                (numbers[place],) = self.hand_over(jobs[place])

    async def result(self, job: Job) -> object:
        """What the job returns."""
        (outcome,) = await self.run(job)
        assert outcome.error is None, outcome
        return None if outcome.result is None else msgspec.json.decode(outcome.result)

    async def make_known(self, job: Job, times: int = 30) -> None:
        """Run the job until its kind is known to be short."""
        for _ in range(times):
            await self.run(job)

    def heard(self, kind: EventKind) -> list[ExecutorEvent]:
        """The events of this kind so far."""
        return [event for event in self.events if event.kind is kind]


def a_backend(
    its: Crew,
    executors: int,
    pool: str = "main",
    options: ExecutorOptions | None = None,
    fence_margin_s: float = 5.0,
    cleanup_budget_s: float = GRACE_S,
    **changes: Any,
) -> ExecutorBackend:
    """A backend on the crew's zygote, with short graces."""
    return ExecutorBackend(
        its.zygote,
        pool,
        executors,
        SystemClock(),
        True,
        options=options or ExecutorOptions(),
        cancellation_grace_s=GRACE_S,
        cleanup_budget_s=cleanup_budget_s,
        fence_margin_s=fence_margin_s,
        on_event=its.events.append,
        **changes,
    )


@contextlib.asynccontextmanager
async def working(its: Crew) -> AsyncIterator[Crew]:
    """The crew's backend, started, and stopped with whatever it still runs."""
    await its.backend.start(its)
    try:
        yield its
    finally:
        its.backend.ask(None, CancellationCause.SHUTDOWN, 0)
        await its.backend.stop()


@contextlib.asynccontextmanager
async def crew(
    executors: int = 2,
    target: str = DEEDS,
    app_dir: Path = ROOT,
    application: Runwick = deeds.rw,
    **changes: Any,
) -> AsyncIterator[Crew]:
    """A started backend; everything is gone when it ends, and nothing was reported twice."""
    its = Crew(application)
    try:
        await its.zygote.boot(target, app_dir)
        its.backend = a_backend(its, executors, **changes)
        async with working(its):
            yield its
    finally:
        await its.zygote.stop()
    told = Counter(its.given_back)
    told.update({job: len(outcomes) for job, outcomes in its.outcomes.items()})
    assert [job for job, times in told.items() if times > 1] == [], "an attempt ended more than once"
    assert its.backend.running() == 0


async def until(condition: Callable[[], object], what: str) -> None:
    """Wait until the condition holds."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + DEADLINE_S
    while not condition():
        if loop.time() > deadline_s:
            raise AssertionError(f"waited {DEADLINE_S:g} s for {what}")
        await asyncio.sleep(0.002)


def is_gone(pid: int) -> bool:
    """Whether nothing of this process runs any more; a zombie that others have not waited for is gone."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def open_descriptors() -> set[str]:
    """What this process has open, by what it is."""
    found = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - the descriptor of the listing itself comes and goes
        with contextlib.suppress(OSError):
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")  # noqa: PTH115 - it is no file's path
    return found
