"""What keeps more jobs from being done now: one answer, from what executors did lately and what waits.

    executors busy? ─┬─ yes ▸ cores busy? ─┬─ yes ▸ handlers
                     │                     └─ no ▸ handlers that wait
                     └─ no ▸ do jobs wait that could run? ─┬─ yes ▸ supervisor, or store
                                                           └─ no ▸ limits, paused, unserved, not due, none at all

It is as good as what is recorded. Nobody records how long claims and settlements take, so the store is named by
elimination: jobs wait, executors are idle, and the supervisor waits too. What a supervisor uses, and whether others
leave it a core, is only known to whoever looks at the processes of its host.
"""

import statistics
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from runwick.contracts.activity import WorkerRecord
from runwick.contracts.administration import Admission
from runwick.contracts.listing import COUNTED_MAX, RUNS_MAX, RunRecord
from runwick.management.amounts import elapsed, percent
from runwick.management.bodies import LimitingBody
from runwick.management.desk.machine import Machine
from runwick.management.desk.trends import cores_used, share_since
from runwick.management.desk.troubles import QueueSight

OVER_MS: Final = 10_000
"""What executors do now is a mean over this time."""
BUSY: Final = 0.8
"""From this share on executors, cores, or a supervisor's one core count as busy."""
FULL: Final = 0.9
"""From this share on a machine counts as used up."""
WAITED_MS: Final = 1_000
"""A due job that has waited less is on its way."""
RUNS_MIN: Final = 5
"""Fewer runs do not tell how long settlements take to arrive."""


class HostSeen(NamedTuple):
    """What somebody saw of a host for a moment."""

    supervisor_cores: float
    """What the busiest supervisor's own process used of a core."""
    idle: float
    """The share of all cores that nobody used."""


class Flow(NamedTuple):
    """One reading of an application at work."""

    now_ms: int
    admission: Admission
    queues: Sequence[QueueSight]
    workers: Sequence[WorkerRecord]
    """Those that live."""
    runs: Sequence[RunRecord]
    """Of all types, the latest first."""
    machine: Machine
    """As every worker's is taken to be."""
    host: HostSeen | None = None
    """None where nobody looked."""

    @property
    def places(self) -> int:
        """Executors of all workers together."""
        return sum(worker.presence.executors for worker in self.workers)

    @property
    def cores(self) -> int:
        """Of all their hosts together."""
        return self.machine.cores * len({worker.presence.host for worker in self.workers})


class Load(NamedTuple):
    """How busy executors and cores were just now."""

    occupancy: float
    """Share of the executors' time inside handlers."""
    cores: float | None
    """Cores used by handlers; None where nothing measured it."""
    over_ms: int


def limiting(flow: Flow) -> LimitingBody:
    """The one thing to look at first."""
    load = _load(flow)
    factor, text = _verdict(flow, load)
    return LimitingBody(factor=factor, text=text, facts=tuple(_facts(flow, load)))


def _verdict(flow: Flow, load: Load | None) -> tuple[str, str]:
    if flow.admission is not Admission.OPEN:
        return "admission", "The store begins nothing: it is drained or under maintenance."
    if load is None:
        return "no_worker", "No worker is at work, so nothing is limited but by that."
    able = min(flow.cores, flow.places)
    if load.cores is not None and load.cores >= BUSY * able:
        return "handlers", (
            f"Handlers are the limit: they use {load.cores:.1f} of {able} cores. Quicker handlers or more cores help; "
            "more executors do not."
            if flow.places >= flow.cores
            else f"Handlers are the limit: every executor computes, on {load.cores:.1f} of {flow.cores} cores. "
            "One executor for each core helps."
        )
    has_work = load.occupancy >= BUSY or any(_waits(queue, flow.now_ms) for queue in flow.queues)
    if has_work and flow.host is not None and 1 - flow.host.idle >= FULL:
        return "machine", (
            f"The machine is the limit: {percent(1 - flow.host.idle)} of its cores are in use, and handlers have only "
            f"{load.cores or 0.0:.1f} of {flow.cores}. What else runs there, as the store's server, takes the rest."
        )
    if load.occupancy >= BUSY:
        return "waiting_handlers", (
            f"Handlers are the limit, but not by computing: executors are {percent(load.occupancy)} busy with them, "
            "mostly waiting. More executors help, as far as memory goes."
        )
    if has_work:
        return _between(flow, load)
    return _starving(flow)


def _waits(queue: QueueSight, now_ms: int) -> bool:
    """Whether a job waits in it that an idle executor could have."""
    oldest_ms = queue.backlog.oldest_due_at_ms
    is_open = queue.is_served and not queue.is_paused
    return is_open and oldest_ms is not None and now_ms - oldest_ms >= WAITED_MS


def _between(flow: Flow, load: Load) -> tuple[str, str]:
    """Jobs wait and executors are idle: what lies between them is too slow."""
    idle = f"Executors are idle for {percent(1 - load.occupancy)} of their time although jobs are due"
    if flow.host is None:
        return "supervisor_or_store", (
            f"{idle}: the supervisor or the store is the limit. Which of them, only a look at the supervisor's process "
            "tells: runwick-supervise --advise on its host."
        )
    used = percent(flow.host.supervisor_cores)
    if flow.host.supervisor_cores >= BUSY:
        return "supervisor", (
            f"{idle}, and the supervisor uses {used} of the one core that it can use: it is the limit. Larger jobs, or "
            "a second worker, help."
        )
    return "store", (
        f"{idle}, and the supervisor, which uses {used} of a core, waits as well: the store is the limit. A quicker "
        "disk or server, or larger jobs, help."
    )


def _starving(flow: Flow) -> tuple[str, str]:
    """Executors are idle and nothing waits that they could have."""
    kept_out = sum(queue.backlog.blocked for queue in flow.queues)
    if kept_out:
        return "limits", (
            f"Limits are the limit: {_jobs(kept_out)} in line for room that they have set, while executors are idle."
        )
    for factor, text, chosen in (
        ("paused", "in paused queues", [queue for queue in flow.queues if queue.is_paused]),
        ("unserved", "in queues that no living worker serves", [queue for queue in flow.queues if not queue.is_served]),
    ):
        waiting = sum(queue.waiting for queue in chosen)
        if waiting:
            return factor, f"Executors are idle while {_jobs(waiting)} {text}."
    later = sum(queue.backlog.later for queue in flow.queues)
    if later:
        return "not_due", f"Executors are idle: {_jobs(later)} not due yet, and nothing else waits."
    return "no_jobs", "Nothing limits it: executors take every job as it comes, and none waits."


def _facts(flow: Flow, load: Load | None) -> Iterator[str]:
    if load is not None:
        used = "not recorded" if load.cores is None else f"{load.cores:.2f} of {flow.cores}"
        over = elapsed(load.over_ms * 1_000)
        yield f"handlers: {percent(load.occupancy)} of {flow.places} executors busy, cores in them {used}, over {over}"
    if flow.host is None:
        yield "supervisor: its share of a core is not recorded"
    else:
        yield f"supervisor: {percent(flow.host.supervisor_cores)} of a core just now, all of its threads together"
        yield f"machine: {percent(flow.host.idle)} of its cores idle just now"
    yield "store: how long claims and settlements take is not recorded"
    arrived_ms = _arrival_ms(flow.runs)
    if arrived_ms is not None:
        yield (
            f"store: half of the last runs were settled within {arrived_ms:.0f} ms of their end, waiting for company "
            "included, as far as its clock and the worker's agree"
        )
    due = sum(queue.backlog.due for queue in flow.queues)
    blocked = sum(queue.backlog.blocked for queue in flow.queues)
    paused = sum(queue.waiting for queue in flow.queues if queue.is_paused)
    yield f"waiting: {due:,} due, {blocked:,} in line for limits, {paused:,} in paused queues"


def _load(flow: Flow) -> Load | None:
    """None where there are no executors."""
    if not flow.places:
        return None
    from_ms = flow.now_ms - OVER_MS
    if len(flow.runs) >= RUNS_MAX:
        from_ms = max(from_ms, min(run.ended_at_ms for run in flow.runs))
    over_ms = max(1, flow.now_ms - from_ms)
    executors = [executor for worker in flow.workers for executor in worker.executors]
    busy_ms = sum(
        run.usage.wall_us / 1_000 * share_since(from_ms, run.begun_at_ms, run.ended_at_ms)
        for run in flow.runs
        if run.ended_at_ms > from_ms and run.usage is not None and run.usage.wall_us is not None
    )
    busy_ms += sum(
        flow.now_ms - max(from_ms, executor.begun_at_ms) for executor in executors if executor.begun_at_ms is not None
    )
    used = cores_used(flow.runs, executors, flow.now_ms, OVER_MS)
    return Load(min(1.0, busy_ms / (over_ms * flow.places)), None if used is None else used.mean, over_ms)


def _arrival_ms(runs: Sequence[RunRecord]) -> float | None:
    """From the end of a run until the store had it, in the middle; None where few say, or clocks differ."""
    delays = [
        run.ended_at_ms - run.begun_at_ms - run.usage.wall_us / 1_000
        for run in runs
        if run.begun_at_ms is not None and run.usage is not None and run.usage.wall_us is not None
    ]
    middle = statistics.median(delays) if len(delays) >= RUNS_MIN else -1.0
    return middle if middle >= 0 else None


def _jobs(count: int) -> str:
    more = " or more" if count >= COUNTED_MAX else ""
    return f"{count:,} job{'s' if count != 1 else ''}{more} {'are' if count != 1 else 'is'}"
