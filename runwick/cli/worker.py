"""``runwick worker``: runs an application's jobs in this process, on threads and on the main thread's event loop.

    import ─▶ check ─┬─ problems, all at once ─▶ exit 2
                     └─ worker ─▶ signals drain it ─▶ exit

Signals are heeded whatever the loop is at; what cannot be stopped ends with the process.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import Final, NoReturn

import click
from setproctitle import setproctitle

from runwick.app.runwick import Runwick
from runwick.app.worker import EmbeddedWorker
from runwick.cli.application import load
from runwick.cli.progress import Progress
from runwick.cli.reporter import Opening, Reporter, report_worker_events
from runwick.cli.run_dir import run_dir_of
from runwick.cli.worker_options import FAILED, STOPPED, worker_options
from runwick.contracts.errors import ConfigurationError, StoreHistoryBroken
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.stores import Outlook
from runwick.health.status_file import open_status_file
from runwick.policy.lanes import lanes_of
from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.runtime.runfile import follow, open_run_file
from runwick.telemetry.bus import Bus
from runwick.telemetry.logs import log_events
from runwick.worker.drain import Stop
from runwick.worker.engine import nothing_left

_NEEDS_INIT: Final = (
    "this worker is process 1, and processes that lose their parents arrive at it. It cannot tell them from what its "
    "handlers started and wait for, so the dead ones stay until it ends. Run it under an init (docker run --init), or "
    "use runwick-supervise."
)
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)
_LATE: Final = 1.15
"""So many times the budget of its stop after the first signal the process ends, whatever its handlers are at."""


@click.command()
@worker_options
def command(
    target: str,
    app_dir: str,
    queues: tuple[str, ...] | None,
    check: bool,
    until_empty: bool,
    reporter: Reporter,
    progress_interval: float,
    run_dir: str | None,
) -> None:
    """Run an application's jobs in this process, on threads and one event loop.

    TERM or Ctrl-C drains: nothing new begins, running handlers may end. A second one asks them to stop, a third one
    leaves them. For handlers that keep the cores busy, or that must be stoppable, there is runwick-supervise.
    """
    started_s = time.monotonic()
    found = run_dir_of(run_dir, make=not check)
    if found.problem is not None:
        raise ConfigurationError([found.problem])
    worker_id = SystemIds().ordered()
    # Before the import: whatever that forks holds the lock as well.
    run_file, note = (None, None) if check else open_run_file(found, worker_id)
    status_file, status_note = (
        (None, None) if check else open_status_file(found, worker_id, "runwick worker", SystemClock())
    )
    for file in (run_file, status_file):
        if file is not None:
            click.get_current_context().call_on_close(file.close)
    runwick = load(target, app_dir)

    def listen(bus: Bus) -> None:
        if status_file is not None:
            status_file.follow(bus, runwick.application)
        if run_file is not None:
            follow(
                run_file,
                bus,
                runwick.application,
                lambda: runwick.store.store_id,
                lambda dead: worker.inherit(dead),
            )
        if logging.getLogger("runwick").hasHandlers():  # otherwise the reporter's lines would come twice
            log_events(bus)
        report_worker_events(bus, reporter)

    until = nothing_left if until_empty else None
    worker = EmbeddedWorker(runwick, queues=queues, until=until, listen=listen, worker_id=worker_id)
    worker.serving.check()
    setproctitle(f"runwick worker {runwick.application}")
    notes = [*filter(None, (note, status_note)), *([_NEEDS_INIT] if os.getpid() == 1 else [])]
    about = _opening(target, app_dir, runwick, worker, notes)
    reporter.opened(about)
    if check:
        reporter.happened("checked", "nothing is wrong, and nothing was started", {})
        return
    _hear_signals(worker, runwick.worker_options.shutdown_budget.total_seconds() * _LATE)
    progress = Progress(
        reporter,
        worker,
        lambda: _outlook(runwick, worker),
        runs=lambda: worker.running,
        cores=None,
        interval_s=progress_interval,
    )
    sys.exit(asyncio.run(_work(runwick, worker, progress, about, reporter, started_s, until_empty=until_empty)))


def _opening(target: str, app_dir: str, runwick: Runwick, worker: EmbeddedWorker, notes: Sequence[str]) -> Opening:
    pools = {pool.name: pool.concurrency for pool in worker.serving.pools}
    return Opening(
        program="runwick worker",
        target=target,
        app_dir=app_dir,
        application=runwick.application,
        store=runwick.store.description,
        size={"slots": sum(pools.values())},
        pools=pools,
        accounting="wall time" if runwick.worker_options.record_resource_usage else None,
        notes=[*runwick.store.notes, *notes],
        force="asks runs to stop, a third time leaves them",
    )


async def _work(
    runwick: Runwick,
    worker: EmbeddedWorker,
    progress: Progress,
    about: Opening,
    reporter: Reporter,
    started_s: float,
    *,
    until_empty: bool,
) -> int:
    """Work until stopped, or until nothing is left; answers the exit status."""
    left = None
    try:
        async with worker:
            progress.begin(about, time.monotonic() - started_s)
            try:
                left = await worker.wait()
            finally:
                progress.end()
    except StoreHistoryBroken:
        if not progress.has_begun:  # the store let nobody in; otherwise the worker's `failure` says it
            raise
    progress.summary(left)
    status = FAILED if until_empty and worker.tally.failed else STOPPED
    if worker.failure is not None:
        reporter.happened("failed", worker.failure, {})
        status = FAILED
    runwick.close()
    if worker.running or worker.tally.outcomes[OutcomeKind.INTERRUPTED]:
        _leave(status)
    return status


async def _outlook(runwick: Runwick, worker: EmbeddedWorker) -> Outlook:
    lanes = lanes_of(dict.fromkeys(queue for pool in worker.serving.pools for queue in pool.queues or ()))
    store = runwick.store
    return await store.run_async(store.outlook(runwick.application, lanes, frozenset(runwick.catalog.decodable)))


def _hear_signals(worker: EmbeddedWorker, within_s: float) -> None:
    """Have TERM and INT stop the worker; `within_s` after the first of them the process ends."""
    thread = threading.Thread(
        target=_stop_as_told, args=(worker, _Signals(), within_s), name="runwick-signals", daemon=True
    )
    thread.start()


class _Signals:
    """The TERMs and INTs that came, for a thread to wait for: an async handler may block the main one.

    The interpreter runs signal handlers in the main thread alone, and one that came just before that went to sleep in
    C is not handled until it wakes. The wake-up descriptor is written at once; but an event loop that hears signals
    itself takes it over, and then the handlers are heard. What one of the two has missed, the other has counted.
    """

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._handled = self._written = self._told = 0
        for number in _ENDING:
            signal.signal(number, self._handle)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the next one; False when the time is over."""
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        while max(self._handled, self._written) <= self._told:
            left_s = None if until_s is None else max(0.0, until_s - time.monotonic())
            if not select.select([self._reader], [], [], left_s)[0]:
                return False
            self._written += sum(number in _ENDING for number in self._reader.recv(64))
        self._told += 1
        return True

    def _handle(self, number: int, frame: object) -> None:
        self._handled += 1
        with contextlib.suppress(BlockingIOError):
            self._writer.send(b"\0")


def _stop_as_told(worker: EmbeddedWorker, signals: _Signals, within_s: float) -> NoReturn:
    signals.wait()
    worker.stop()
    more_urgent = itertools.chain((Stop.CANCEL,), itertools.repeat(Stop.KILL))
    until_s = time.monotonic() + within_s
    while (left_s := until_s - time.monotonic()) > 0:
        if signals.wait(left_s):
            worker.stop(next(more_urgent))
    _leave(FAILED)


def _leave(status: int) -> NoReturn:
    """End the process at once: a run that did not stop may have left something behind that never ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    os._exit(status)
