"""What is wrong now: rules over one reading of queues, workers and runs, the worst first.

Each rule's numbers stand here by name. A trouble goes by itself when its rule no longer holds.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from runwick.contracts.activity import WorkerRecord
from runwick.contracts.administration import WORKER_ALIVE_MS, Admission
from runwick.contracts.identity import id_text
from runwick.contracts.listing import COUNTED_MAX, Backlog, RunRecord
from runwick.management.amounts import elapsed, percent
from runwick.management.bodies import TroubleBody
from runwick.management.desk.figures import has_failed

BEHIND_MS: Final = 60_000
"""A queue is behind when its oldest due job has waited longer than this, although it is open and somebody serves it."""
RECENT_MS: Final = 60 * 60 * 1000
"""Deaths, failures and lost workers are told for as long as this."""
DEATHS_MIN: Final = 3
"""So many executors that died in recent runs of one type are a trouble; fewer can happen."""
COMPARED: Final = 50
"""The last so many recent runs of a type are compared with as many before them…"""
COMPARED_MIN: Final = 20
"""…if there are at least so many."""
ALL_FAILED_MIN: Final = 3
"""Fewer are a trouble from so many on when every one of them failed."""
RISING_SHARE: Final = 0.1
"""Failures rise when this share of the last runs failed…"""
RISING_FACTOR: Final = 2
"""…and it is so many times the share of those before."""
MANY_SHARE: Final = 0.5
"""From this share on it is a trouble whether it rises or not."""

_SEVERITIES: Final = ("error", "warning")
_CAUSES: Final = {
    "out_of_memory": "killed for memory",
    "memory_limit": "over a memory limit",
    "signal": "by a signal",
    "exit": "by exiting",
    "unknown": "in an unknown way",
}


class QueueSight(NamedTuple):
    """One queue that the caller may look at."""

    backlog: Backlog
    is_paused: bool
    is_served: bool
    """A living worker claims from it."""

    @property
    def waiting(self) -> int:
        """Jobs in it that nobody runs."""
        return self.backlog.due + self.backlog.later + self.backlog.blocked


class Sight(NamedTuple):
    """One reading, as far as the caller may look."""

    now_ms: int
    admission: Admission
    queues: Sequence[QueueSight]
    workers: Sequence[WorkerRecord]
    """Empty for a caller who may not look at workers."""
    runs: Sequence[RunRecord]
    """The latest first."""


def troubles_of(sight: Sight) -> tuple[TroubleBody, ...]:
    """Everything that is wrong: errors first, each kind in the order of the rules."""
    found = [trouble for rule in _RULES for trouble in rule(sight)]
    return tuple(sorted(found, key=lambda trouble: _SEVERITIES.index(trouble.severity)))


def _admission(sight: Sight) -> Iterator[TroubleBody]:
    if sight.admission is Admission.MAINTENANCE:
        text = "The store is under maintenance: nothing is dispatched, run or changed until an operator opens it."
        yield TroubleBody(code="admission_closed", severity="error", text=text)
    elif sight.admission is Admission.DRAIN:
        text = "The application is being drained: nothing new is dispatched or begun until an operator opens it."
        yield TroubleBody(code="admission_closed", severity="warning", text=text)


def _unserved(sight: Sight) -> Iterator[TroubleBody]:
    for queue in sight.queues:
        stuck = queue.backlog.due + queue.backlog.blocked
        if stuck and not queue.is_paused and not queue.is_served:
            text = f"No living worker serves queue {queue.backlog.queue}, where {_jobs(stuck, 'waiting')}."
            yield TroubleBody(code="no_worker", severity="error", text=text, queue=queue.backlog.queue)


def _behind(sight: Sight) -> Iterator[TroubleBody]:
    for queue in sight.queues:
        oldest_ms = queue.backlog.oldest_due_at_ms
        if oldest_ms is None or queue.is_paused or not queue.is_served:
            continue
        waited_ms = sight.now_ms - oldest_ms
        if waited_ms > BEHIND_MS:
            text = (
                f"Queue {queue.backlog.queue} is behind: its oldest due job has waited {elapsed(waited_ms * 1000)}, "
                f"and {_jobs(queue.backlog.due)} due."
            )
            yield TroubleBody(code="queue_behind", severity="error", text=text, queue=queue.backlog.queue)


def _dying(sight: Sight) -> Iterator[TroubleBody]:
    for name, runs in _by_type(sight).items():
        causes = Counter(run.death for run in runs if run.death is not None)
        if causes.total() >= DEATHS_MIN:
            listed = ", ".join(f"{count} {_CAUSES.get(cause, cause)}" for cause, count in causes.most_common())
            text = f"Executors die under {name}: {causes.total()} of its last {len(runs)} runs ({listed})."
            yield TroubleBody(code="executors_dying", severity="error", text=text, name=name)


def _failing(sight: Sight) -> Iterator[TroubleBody]:
    for name, runs in _by_type(sight).items():
        last, before = runs[:COMPARED], runs[COMPARED : 2 * COMPARED]
        share = _failed_share(last)
        if len(last) < COMPARED_MIN:
            if len(last) >= ALL_FAILED_MIN and all(map(has_failed, last)):
                text = f"Nothing of {name} succeeds: {len(last)} of its last {len(last)} runs failed."
                yield TroubleBody(code="failures_many", severity="error", text=text, name=name)
        elif share >= MANY_SHARE:
            text = f"Most of {name} fails: {percent(share)} of its last {len(last)} runs."
            yield TroubleBody(code="failures_many", severity="error", text=text, name=name)
        elif len(before) >= COMPARED_MIN and share >= RISING_SHARE and share >= RISING_FACTOR * _failed_share(before):
            text = (
                f"Failures of {name} are rising: {percent(share)} of its last {len(last)} runs, after "
                f"{percent(_failed_share(before))} of the {len(before)} before."
            )
            yield TroubleBody(code="failures_rising", severity="error", text=text, name=name)


def _lost(sight: Sight) -> Iterator[TroubleBody]:
    for worker in sight.workers:
        silent_ms = sight.now_ms - worker.seen_at_ms
        if worker.departed_at_ms is None and WORKER_ALIVE_MS <= silent_ms < RECENT_MS:
            place = f"{worker.presence.host}, process {worker.presence.process}"
            text = f"A worker is lost: {place}, has not told for {elapsed(silent_ms * 1000)} and never said good-bye."
            yield TroubleBody(code="worker_lost", severity="warning", text=text, worker=id_text(worker.presence.worker))


def _paused(sight: Sight) -> Iterator[TroubleBody]:
    for queue in sight.queues:
        if queue.is_paused and queue.waiting:
            text = f"Queue {queue.backlog.queue} is paused, and {_jobs(queue.waiting, 'waiting')} in it."
            yield TroubleBody(code="queue_paused", severity="warning", text=text, queue=queue.backlog.queue)


_RULES: Final[Sequence[Callable[[Sight], Iterator[TroubleBody]]]] = (
    _admission,
    _unserved,
    _behind,
    _dying,
    _failing,
    _lost,
    _paused,
)


def _by_type(sight: Sight) -> dict[str, list[RunRecord]]:
    """The recent runs of each type, the latest first."""
    found: dict[str, list[RunRecord]] = {}
    for run in sight.runs:
        if run.ended_at_ms > sight.now_ms - RECENT_MS:
            found.setdefault(run.kind.name, []).append(run)
    return found


def _failed_share(runs: Sequence[RunRecord]) -> float:
    return sum(map(has_failed, runs)) / len(runs)


def _jobs(count: int, how: str = "") -> str:
    """``1 job is``, ``10,000 jobs or more are``."""
    counted = (
        f"{count:,} jobs or more are" if count >= COUNTED_MAX else "1 job is" if count == 1 else f"{count:,} jobs are"
    )
    return f"{counted} {how}".rstrip()
