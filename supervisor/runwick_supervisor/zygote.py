"""The zygote: a fresh interpreter that imported the application, and forks executors from there.

    python -m runwick_supervisor.zygote SOCKET PARENT

    told what to import ─▶ imports, collects, freezes ─▶ manifest ─▶ fork · watch · fork · … ─▶ the parent is gone
                             └─ refused: every problem ─▶ end                                   └─ kill all that is left

    zygote ─ forks by way of a middle (`forking`) ─▶ executor, the parent's child ─▶ its pidfd is opened ─▶ `Born`

It stays single-threaded, since a fork copies one thread and every lock that the others held. It never runs a job, never
opens a store, and outlives a killed parent only for the moment it takes to kill what the executors started; the kernel
wakes it for that if it stands still. While the parent stands still, it kills what outlives its lease.
"""

import contextlib
import gc
import importlib
import math
import os
import select
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from runwick.app.locate import locate
from runwick.app.runwick import Runwick
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.declarations.catalog import Catalog
from runwick.version import __version__
from runwick_supervisor import native, processes
from runwick_supervisor.child import Origin, flush_streams, live
from runwick_supervisor.fence import FenceReader
from runwick_supervisor.forking import fork_away
from runwick_supervisor.handoff import Descriptors
from runwick_supervisor.link import (
    Boot,
    Born,
    Fork,
    Gone,
    Grade,
    Guard,
    Link,
    LinkBroken,
    Manifest,
    Message,
    NotBorn,
    Refused,
    storable,
)
from runwick_supervisor.native import Library
from runwick_supervisor.scheduling import Scheduling
from runwick_supervisor.sweep import kill_sessions, orphans_of

_TRACEBACK_LINES: Final = 12
_PROBLEM_MAX_CHARACTERS: Final = 8000
_KILL_WITHIN_S: Final = 2.0
_WATCH_MS: Final = 100
"""How often the fence is looked at, at least; no moment is set so near."""


def main() -> None:
    """Be the zygote."""
    descriptor, parent = (int(argument) for argument in sys.argv[1:3])
    link = Link(socket.socket(fileno=descriptor))
    os.set_inheritable(descriptor, False)
    processes.catch_stop_signals()
    # An import is not interrupted by the end of the conversation, so until it is over the kernel must do it.
    processes.die_with_parent(parent)
    # Whatever comes behind the fence is the run file: kept open, by this process and by all that it forks.
    message, (fence, *_) = link.receive()
    assert isinstance(message, Boot), message
    processes.set_title(f"runwick zygote {message.target}")
    answer, catalog = introduce(message)
    if catalog is None:
        link.send(answer)
        return
    processes.set_title(f"runwick zygote {catalog.application}")
    # Once more: the import may have installed its own.
    processes.catch_stop_signals()
    gc.collect()
    gc.freeze()
    processes.outlive_parent()
    link.send(answer)
    Nursery(link, catalog, parent, FenceReader(fence)).serve()


def introduce(boot: Boot) -> tuple[Manifest | Refused, Catalog | None]:
    """Import the application and say what it declares, or all that is wrong with that. Nothing is opened."""
    try:
        app = _imported(boot)
    except ConfigurationError as error:
        return Refused(tuple(map(_sendable, error.problems))), None
    problems = tuple(map(_sendable, app.problems()))
    try:
        catalog = app.catalog
    except ConfigurationError:
        return Refused(problems, _store_of(app)), None
    decodable = sorted(catalog.decodable)
    grade, grade_warnings = _grade(app)
    manifest = Manifest(
        release=__version__,
        application=catalog.application,
        store=_store_of(app),
        worker=app.worker_options,
        stores=app.store_options,
        executors=app.executor_options,
        grade=grade,
        pools=tuple(catalog.pools),
        queues=tuple(sorted(catalog.queues)),
        kinds=tuple(decodable),
        lanes=tuple(sorted({catalog.jobs[kind].lane for kind in sorted(catalog.handlers)})),
        time_limits_ms={kind.name: entry.policy.execution_timeout_ms for kind, entry in catalog.jobs.items()},
        limits=catalog.limits,
        warnings=(*_thread_warnings(boot.target), *grade_warnings),
        problems=(*problems, *map(_sendable, catalog.unknown_aliases)),
    )
    return manifest, catalog


def _imported(boot: Boot) -> Runwick:
    """The application, after whose import come the modules to be preloaded.

    Raises:
        ConfigurationError: one of them cannot be found, or importing it raised.
    """
    own, importing = os.getpid(), boot.target
    try:
        app = locate(boot.target, Path(boot.app_dir))
        for importing in boot.preload:
            importlib.import_module(importing)
    except ConfigurationError:
        raise
    except BaseException as error:
        lines = "".join(traceback.format_exception(error)).splitlines()[-_TRACEBACK_LINES:]
        raise ConfigurationError([Problem("import_failed", importing, "\n".join(lines))]) from None
    else:
        return app
    finally:
        if os.getpid() != own:
            # The import forked, and this is its child coming back: it must not be a second zygote on the same link.
            processes.leave(0)


def _store_of(app: Runwick) -> str | None:
    try:
        return app.store_url
    except ConfigurationError:
        return None  # among the application's problems


def _grade(app: Runwick) -> tuple[Grade, list[str]]:
    """How strongly its executors are fenced, and a warning when that is less than is wanted."""
    if not app.executor_options.compiled_part:
        return "watched", []
    library, refused = native.load()
    if library is not None:
        return "full", []
    return "watched", [
        f"{refused}. Executors that outlive their leases are stopped by the zygote alone; allocations are not counted."
    ]


def _thread_warnings(target: str) -> list[str]:
    """Name the threads that the import left running: a fork leaves them out, and copies the locks they hold."""
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    native = len(list(Path("/proc/self/task").iterdir())) - 1 - len(threads)
    if native > 0:
        threads.append(f"{native} that Python did not start")
    if not threads:
        return []
    named = storable(", ".join(threads))
    return [
        f"importing {target} left threads running: {named}. Executors are forked without them and may wait for ever "
        f"for what they held. Start threads in a provider of process scope."
    ]


def _sendable(problem: Problem) -> Problem:
    return Problem(problem.code, storable(problem.setting), storable(problem.message)[-_PROBLEM_MAX_CHARACTERS:])


class _Charge(NamedTuple):
    """An executor that the parent has not buried."""

    number: int
    pidfd: int


class Nursery:
    """Makes executors as the parent asks, knows which ones live, and watches the fence for them."""

    def __init__(self, link: Link, catalog: Catalog, parent: int, fence: FenceReader) -> None:
        self._link = link
        self._catalog = catalog
        self._parent = parent
        self._fence = fence
        self._library, _ = native.load()
        self._living: dict[int, _Charge] = {}
        """By pid, those of earlier zygotes included. Their own death tells nothing: they may have died with the
        parent, and then their groups are still to be killed."""
        self._fallen: set[int] = set()
        """Pids of those that were killed because their moment had come."""
        self._poller = select.poll()
        self._poller.register(link.fileno(), select.POLLIN)

    def serve(self) -> None:
        """Do what the parent says until it is gone; then let nothing outlive it."""
        try:
            while True:
                if self._poller.poll(self._watch_ms()):
                    self._obey(*self._link.receive())
                self._kill_fallen()
                self._kill_left_behind()
        except LinkBroken:
            self._kill_all()

    def _watch_ms(self) -> int:
        """How long nothing has to be looked at."""
        due_ns = [due for pid in self._living if pid not in self._fallen and (due := self._due_ns(pid)) is not None]
        return max(0, min(_WATCH_MS, *[math.ceil(due / 1_000_000) for due in due_ns])) if due_ns else _WATCH_MS

    def _due_ns(self, pid: int) -> int | None:
        return self._fence.due_ns(self._living[pid].number)

    def _kill_fallen(self) -> None:
        """Kill, with all that came from it, whatever has outlived its moment: the parent stands still."""
        for pid, charge in self._living.items():
            due_ns = self._due_ns(pid)
            if due_ns is not None and due_ns <= 0 and pid not in self._fallen:
                self._fallen.add(pid)
                processes.kill_tree(pid, charge.pidfd, within_s=_KILL_WITHIN_S)
                kill_sessions([pid], within_s=_KILL_WITHIN_S)

    def _kill_left_behind(self) -> None:
        """An executor that the kernel's timer killed has left what it started to the parent, which cannot sweep while
        it stands still. Another zygote, in the middle of a reload, is not known here and dies too: it is replaced."""
        if self._fallen and processes.is_stopped(self._parent):
            for orphan in orphans_of(self._parent, {os.getpid(), *self._living}):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(orphan, signal.SIGKILL)

    def _obey(self, message: Message, received: list[int]) -> None:
        if isinstance(message, Fork) and len(received) == len(Descriptors._fields):
            self._bear(message, Descriptors(*received))
        elif isinstance(message, Guard) and len(received) == 1:
            self._living[message.pid] = _Charge(message.executor, received[0])
        elif isinstance(message, Gone):
            self._fallen.discard(message.pid)
            if (charge := self._living.pop(message.pid, None)) is not None:
                os.close(charge.pidfd)
        else:
            raise LinkBroken(f"{type(message).__name__} with {len(received)} descriptors makes no sense here")

    def _bear(self, request: Fork, descriptors: Descriptors) -> None:
        """Fork, and announce the executor to the parent, whose child it is by then."""
        flush_streams()
        own = os.getpid()
        library = self._library if request.options.compiled_part else None
        try:
            born = fork_away(library)
            if os.getpid() != own:
                self._live(request, descriptors, born.middle, library)
        except OSError as error:
            descriptors.close()
            self._link.send(NotBorn(request.executor, f"the zygote cannot fork: {error.strerror}"))
            return
        finally:
            if os.getpid() != own:
                processes.leave(0)  # whatever happens in an executor, it goes no further here
        descriptors.close()
        self._announce(request.executor, born.pid)

    def _announce(self, executor: int, pid: int) -> None:
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            self._link.send(NotBorn(executor, f"the zygote cannot watch it: {error.strerror}"))
            return
        self._living[pid] = _Charge(executor, pidfd)
        self._link.send(Born(executor, pid), [pidfd])

    def _live(self, request: Fork, descriptors: Descriptors, middle: int, library: Library | None) -> NoReturn:
        """Be the executor."""
        live(
            Origin(
                number=request.executor,
                catalog=self._catalog,
                descriptors=descriptors,
                parent=self._parent,
                middle=middle,
                inherited=(self._link.fileno(), *[charge.pidfd for charge in self._living.values()]),
                record_usage=request.record_usage,
                fence=self._fence.descriptor,
                library=library,
                count_allocations=request.record_usage and request.options.record_allocations,
                oom_score_adj=request.options.oom_score_adj,
                scheduling=Scheduling(request.options.nice, request.options.pin),
            )
        )

    def _kill_all(self) -> None:
        """The parent is dead: kill the executors, their process groups and whatever else is in their sessions."""
        for charge in self._living.values():
            processes.kill(charge.pidfd)
        kill_sessions(self._living.keys(), within_s=_KILL_WITHIN_S)


if __name__ == "__main__":
    try:
        main()
    except LinkBroken:
        pass  # the parent is gone, and nobody is left to be told
    except BaseException:
        traceback.print_exc()
    finally:
        flush_streams()
        processes.leave(0)
