"""What the parent does for each job: the real engine with the real executor backend, in virtual time, on a store in
memory whose every call takes a millisecond.

Nobody is quicker or slower than another time, so also the sizes of batches and the number of wake-ups are exact.
"""

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from runwick.config.options import ExecutorOptions, WorkerOptions
from runwick.contracts.dispatching import COMMAND_LIFETIME_MAX_MS, Command
from runwick.contracts.identity import job_of_operation
from runwick.contracts.policies import JobPolicy
from runwick.contracts.stores import Act
from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.stores.memory.store import MemoryStore
from runwick.telemetry.bus import Bus
from runwick.worker.engine import Worker, nothing_left
from runwick.worker.pools import ServedPool
from runwick_supervisor.backend import ExecutorBackend
from tests.ambient import FakeDice
from tests.hot_paths.instructions import Instructions
from tests.hot_paths.played_executors import PlayedZygote
from tests.hot_paths.system_calls import between_marks, mark, traced
from tests.hot_paths.virtual_time import VirtualTime
from tests.worker.ground import APPLICATION, KIND, LANE

T = TypeVar("T")

CALL_S: Final = 0.001
EXECUTORS: Final = 2
FENCE_MARGIN_S: Final = 5.0


class Scene(NamedTuple):
    """What a worker lives through."""

    jobs: int
    run_s: float
    """How long each of them runs."""
    every_s: float = 0.0
    """How long after each other they are dispatched, and the worker is stopped after the last. 0: all of them are there
    before, and it ends when none is left."""


NO_OPS: Final = Scene(1_000, 20e-6)
SCENES: Final = {
    "no-ops": NO_OPS,
    "5 ms": Scene(400, 0.005),
    "200 ms": Scene(20, 0.2),
    "one by one": Scene(50, 20e-6, every_s=0.05),
    "idle": Scene(0, 0.0, every_s=60.0),
}


class SlowStore(MemoryStore):
    """A store in memory each of whose calls takes as long as one to a server that syncs its disk."""

    def __init__(self, uncounted: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        super().__init__(clock=SystemClock(), ids=SystemIds())
        self.calls: Counter[str] = Counter()
        self._uncounted = uncounted

    async def run_async(self, act: Act[T]) -> T:
        self.calls[act.name] += 1
        await asyncio.sleep(CALL_S)
        with self._uncounted():
            return self.run(act)

    def fill(self, jobs: int) -> None:
        """Dispatch so many."""
        with self._uncounted():
            self.run(self.dispatch([_command(self) for _ in range(jobs)]))


def worker_paths(folder: Path) -> dict[str, float]:
    """By ``worker SCENE: COUNT``; `folder` is empty."""
    costs = {f"worker {name}: {count}": cost for name, scene in SCENES.items() for count, cost in lived(scene).items()}
    script = [sys.executable, "-m", "tests.hot_paths.scripted", "worker"]
    (calls,) = between_marks(traced(script, "", folder / "calls").calls)
    costs["worker no-ops: system calls per job"] = sum(calls.values()) / NO_OPS.jobs
    return costs


def lived(scene: Scene) -> dict[str, float]:
    """What a worker does from its start to its end."""
    instructions = Instructions()
    time = VirtualTime(instructions.paused)
    with time.passing() as loop:
        store = SlowStore(instructions.paused)
        if not scene.every_s:
            store.fill(scene.jobs)
        mark()
        with instructions.counted():
            loop.run_until_complete(_live(store, time, scene))
        mark()
    share = "instructions per job" if scene.jobs else "instructions"
    return {
        share: instructions.count / max(1, scene.jobs),
        "claims": store.calls["claim"],
        "settlements": store.calls["settle"],
        "other calls": store.calls.total() - store.calls["claim"] - store.calls["settle"],
        "wake-ups": time.wake_ups,
        "looks": time.looks,
    }


def _command(store: SlowStore) -> Command:
    operation_id = SystemIds().ordered()
    return Command(
        operation_id=operation_id,
        job_id=job_of_operation(operation_id),
        deadline_ms=store.now_ms() + COMMAND_LIFETIME_MAX_MS,
        application=APPLICATION,
        kind=KIND,
        lane=LANE,
        policy=JobPolicy(),
        payload=b"{}",
    )


async def _live(store: SlowStore, time: VirtualTime, scene: Scene) -> None:
    zygote = PlayedZygote(time, scene.run_s, KIND)
    clock = SystemClock()
    backend = ExecutorBackend(
        zygote,
        "main",
        EXECUTORS,
        clock,
        True,
        options=ExecutorOptions(),
        cancellation_grace_s=10.0,
        cleanup_budget_s=1.0,
        fence_margin_s=FENCE_MARGIN_S,
    )
    worker = Worker(
        store,
        [ServedPool("main", backend, {LANE.queue: 1}, EXECUTORS)],
        application=APPLICATION,
        kinds=frozenset({KIND}),
        options=WorkerOptions(),
        clock=clock,
        dice=FakeDice(),
        ids=SystemIds(),
        bus=Bus(),
    )
    life = asyncio.create_task(worker.run(until=None if scene.every_s else nothing_left))
    try:
        if scene.every_s:
            for _ in range(scene.jobs):
                await asyncio.sleep(scene.every_s)
                store.fill(1)
            await asyncio.sleep(scene.every_s)
            worker.stop()
        await life
    finally:
        await zygote.stop()
