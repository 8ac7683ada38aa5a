"""``--advise``: what the recorded runs of an application suggest, and what keeps more of its jobs from being done now.

    store ─ last runs, backlogs, queues, workers ─┐
    /proc ─ supervisors of this host, its cores ──┴─▶ rules of the desk ─▶ a report, and one line to copy

It only reads. What nobody records it says.
"""

import asyncio
import shlex
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import psutil

from runwick.config.sources import PREFIX
from runwick.contracts.activity import WorkerRecord
from runwick.contracts.listing import RUNS_MAX
from runwick.management.desk.limiting import Flow, HostSeen, limiting
from runwick.management.desk.machine import Machine
from runwick.management.desk.sizing import RUNS_MIN
from runwick.management.desk.troubles import QueueSight
from runwick.management.desk.tuning import TuningBody, TypeRuns, TypeTuningBody, tuning_of
from runwick.management.desk.workers import is_alive
from runwick_supervisor.cores import usable_cores
from runwick_supervisor.planning import Orders, Plan

_PROGRAM: Final = "runwick-supervise"
_LOOK_S: Final = 1.0
"""How long processes of this host are watched."""
_BY_COMMAND_LINE: Final = ("executors_per_core", "numeric_threads")
"""Options that the command line takes; the others are variables in front of it."""


class Advice(NamedTuple):
    """Everything that there is to say."""

    tuning: TuningBody
    command: str | None
    """To be copied; None where nothing is recommended."""
    pools: str | None
    """How many executors each pool has, where the application says it of several."""

    @property
    def facts(self) -> dict[str, object]:
        """For machines."""
        tuned: dict[str, object] = msgspec.to_builtins(self.tuning)
        return {**tuned, "command": self.command, "pools": self.pools}

    @property
    def text(self) -> str:
        """For people."""
        return "\n".join(_lines(self))


async def advise(orders: Orders, plan: Plan) -> Advice:
    """Read what is recorded, watch this host for a moment, and judge it.

    Raises:
        StoreError: the store does not answer.
    """
    store, application = plan.store, plan.manifest.application
    standing = await store.run_async(store.standing(application))
    paused = {record.queue for record in await store.run_async(store.queues(application)) if record.paused}
    backlogs = await store.run_async(store.backlogs(application))
    mix = await store.run_async(store.runs(application, None, None, RUNS_MAX))
    types: dict[str, TypeRuns] = {}
    for name, limit_ms in sorted(plan.manifest.time_limits_ms.items()):
        last = await store.run_async(store.runs(application, name, None, RUNS_MAX))
        types[name] = TypeRuns(last, limit_ms)
    now_ms = store.now_ms()
    alive = [worker for worker in await store.run_async(store.workers(application)) if is_alive(worker, now_ms)]
    served = {queue for worker in alive for queue in worker.presence.queues}
    machine = msgspec.structs.replace(Machine.here(), cores=usable_cores())
    flow = Flow(
        now_ms,
        standing.admission,
        [QueueSight(each, each.queue in paused, each.queue in served) for each in backlogs],
        alive,
        mix,
        machine,
        await _seen(alive),
    )
    tuning = tuning_of(types, mix, machine, limiting(flow))
    several = ", ".join(f"{pool.name} {pool.concurrency}" for pool in plan.pools) if len(plan.pools) > 1 else None
    return Advice(tuning, _command(orders, tuning.settings, with_executors=several is None), several)


async def _seen(alive: Sequence[WorkerRecord]) -> HostSeen | None:
    """This host for a moment, if supervisors of these workers run on it."""
    supervisors = [
        process
        for worker in alive
        if worker.presence.host == socket.gethostname()
        and (process := _supervisor(worker.presence.process)) is not None
    ]
    if not supervisors:
        return None
    before = [_cpu_s(process) for process in supervisors]
    psutil.cpu_percent()
    await asyncio.sleep(_LOOK_S)
    idle = 1 - psutil.cpu_percent() / 100
    used = [(_cpu_s(process) - was) / _LOOK_S for process, was in zip(supervisors, before, strict=True)]
    return HostSeen(supervisor_cores=max(0.0, *used), idle=min(1.0, max(0.0, idle)))


def _supervisor(pid: int) -> psutil.Process | None:
    """The process, if it is a supervisor: a number may be another one's, as in a container's own count."""
    try:
        process = psutil.Process(pid)
        return process if " ".join(process.cmdline()[:1]).startswith(_PROGRAM) else None
    except psutil.Error:
        return None


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0  # it ended meanwhile
    return times.user + times.system


def _command(orders: Orders, settings: dict[str, str], *, with_executors: bool) -> str | None:
    """The command line that does what is recommended."""
    if not settings:
        return None
    variables = [f"{PREFIX}{name.upper()}={value}" for name, value in settings.items() if name not in _BY_COMMAND_LINE]
    options = [
        f"--{name.replace('_', '-')} {settings[name]}"
        for name in _BY_COMMAND_LINE
        if name in settings and (with_executors or name != "executors_per_core")
    ]
    where = [] if orders.app_dir == str(Path.cwd()) else ["--app-dir", shlex.quote(orders.app_dir)]
    return " ".join([*variables, _PROGRAM, shlex.quote(orders.target), *where, *options])


def _lines(advice: Advice) -> Iterator[str]:
    tuning = advice.tuning
    yield f"what limits it now: {tuning.limiting.text}"
    yield from (f"  {fact}" for fact in tuning.limiting.facts)
    for each in tuning.types:
        yield f"{each.name}: {_ground(each)}"
        yield from (f"  {one.text}" for one in each.advice)
    yield "all together:"
    if not tuning.advice:
        yield f"  too few runs were measured for a recommendation: it takes {RUNS_MIN}"
    yield from (f"  {_named(one.settings)}{one.text}" for one in tuning.advice)
    if advice.pools is not None:
        yield f"  how many executors there are, the pools' concurrency says: {advice.pools}"
    if advice.command is not None:
        yield f"recommended: {advice.command}"


def _ground(each: TypeTuningBody) -> str:
    runs = f"{each.runs:,} run{'s' * (each.runs != 1)}"
    return f"its last {runs}" if each.is_enough else f"{runs}, too few for advice: it takes {RUNS_MIN}"


def _named(settings: dict[str, str]) -> str:
    return "".join(f"{name} {value}: " for name, value in settings.items())
