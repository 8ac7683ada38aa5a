"""The four acts of every job on a store, each done some times over while everything that counts is read."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from unittest import mock

from runwick import Runwick
from runwick.contracts.attempts import Attempt
from runwick.contracts.dispatching import BATCH_MAX_ITEMS
from runwick.stores.postgres import telling
from scripts.benchmarks.application import Nothing, application
from scripts.benchmarks.ground import CLAIM, Ground, claimed_again, succeeded
from tests.hot_paths.instructions import Instructions
from tests.hot_paths.system_calls import SYNCS, between_marks, traced

WARM: Final = 2
"""How often each act is done before anybody counts: statements are prepared, pages and caches filled."""
TIMES: Final = 4
"""How often it is done then."""
_PIECES: Final = ("poll", "recvfrom")
"""In how many pieces an answer arrives is not known before."""

PHASES: Final = {
    "dispatch": 1,
    f"dispatch {BATCH_MAX_ITEMS}": BATCH_MAX_ITEMS,
    f"claim {CLAIM}": CLAIM,
    f"settle {CLAIM}": CLAIM,
    "idle claim": 1,
}
"""The acts in their order, and how many jobs each is for."""

Readings = Mapping[str, float]
"""What a store says of everything that was done so far, by what it is that is counted."""


@contextmanager
def opened(url: str) -> Iterator[Runwick]:
    """The application on the migrated store at this URL.

    What it does only now and then is not left to chance: no time passes since it did that last, but that on PostgreSQL
    every dispatch tells of its work with its own commit, as one that comes alone.
    """
    steady_s = time.clock_gettime(time.CLOCK_MONOTONIC)

    def standing(clock: int) -> float:
        return steady_s

    with (
        mock.patch.object(telling, "INTERVAL_S", 0.0),
        mock.patch.object(time, "clock_gettime", standing),
        closing(application(url)) as rw,
    ):
        rw.check()
        yield rw


def acts(rw: Runwick, read: Callable[[], Readings]) -> dict[str, float]:
    """What each act costs: instructions of the calling thread, and by how much the store's readings grow.

    Args:
        rw: on an empty store.
        read: called before and after the repetitions of one act.

    Returns:
        By ``ACT: COUNT``; what is named "per job" is one job's share, all else belongs to one act.
    """
    costs: dict[str, float] = {}
    for (name, jobs), act in zip(PHASES.items(), _runs(Ground("", rw)), strict=True):
        for _ in range(WARM):
            act()
        before = read()
        instructions = Instructions()
        with instructions.counted():
            for _ in range(TIMES):
                act()
        after = read()
        costs[f"{name}: instructions per job"] = instructions.count / TIMES / jobs
        for counted in after:
            share = jobs if counted.endswith(" per job") else 1
            costs[f"{name}: {counted}"] = (after[counted] - before[counted]) / TIMES / share
    return costs


def _runs(ground: Ground) -> Iterator[Callable[[], object]]:
    """What does each act once; before the next one is asked for, it was done as often as it shall be."""
    rounds = WARM + TIMES
    store, job = ground.rw.store, Nothing()
    yield lambda: ground.rw.dispatch(job)
    yield lambda: ground.rw.dispatch_many([job] * BATCH_MAX_ITEMS)
    ground.fill(job, rounds * CLAIM - rounds * (1 + BATCH_MAX_ITEMS))
    plans = iter([claimed_again(ground.claim_plan(Nothing)) for _ in range(rounds)])
    claimed: list[Sequence[Attempt]] = []
    yield lambda: claimed.append(store.run(store.claim(next(plans))).attempts)
    assert [len(attempts) for attempts in claimed] == [CLAIM] * rounds
    ends = iter([succeeded(attempts) for attempts in claimed])
    yield lambda: store.run(store.settle(next(ends)))
    idle = iter([claimed_again(ground.claim_plan(Nothing)) for _ in range(rounds)])
    yield lambda: store.run(store.claim(next(idle)))


def acts_system_calls(url: str, folder: Path, *, syncs_itself: bool = False) -> dict[str, float]:
    """What each act costs in system calls.

    Args:
        url: of an empty store.
        folder: for the log of calls.
        syncs_itself: whether no server does that.
    """
    calls = traced([sys.executable, "-m", "tests.hot_paths.scripted", "acts"], url, folder / "calls").calls
    costs: dict[str, float] = {}
    for name, counts in zip(PHASES, between_marks(calls), strict=True):
        costs[f"{name}: system calls"] = sum(n for call, n in counts.items() if call not in _PIECES) / TIMES
        if syncs_itself:
            costs[f"{name}: syncs"] = sum(counts[call] for call in SYNCS) / TIMES
    return costs
