"""The zygote as the parent sees it: executed, asked for executors, replaced when it dies.

    boot ─▶ manifest ─▶ keep ─┬─ fork · fork · fork
              ▲               └─ dies ─▶ executed anew, told of every living executor ─▶ fork …
              └── an import that fails or takes too long: ConfigurationError at boot, tried again later

The parent never forks itself: it executes a fresh interpreter and talks to it over a `Link`. One thing is said at a
time. While an application is loaded anew there are two of a `Family`: the former one bears nobody any more and stays
until its last executor is gone.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from runwick.config.numeric import THREADS_USUAL, thread_variables
from runwick.config.options import ExecutorOptions
from runwick.contracts.attempts import Kind
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.version import __version__
from runwick_supervisor import processes
from runwick_supervisor.events import EventKind, ExecutorEvent, ignore
from runwick_supervisor.family import Family
from runwick_supervisor.fence import FenceMemory
from runwick_supervisor.handoff import Descriptors
from runwick_supervisor.link import Boot, Born, Fork, Gone, Grade, Guard, LinkBroken, Manifest, NotBorn, Refused
from runwick_supervisor.zygote_process import ZygoteProcess

BOOT_TIMEOUT_S: Final = 60.0
_FORK_TIMEOUT_S: Final = 10.0
_END_TIMEOUT_S: Final = 5.0
_RETRY_FIRST_S: Final = 0.5
_RETRY_MAX_S: Final = 10.0


class ApplicationRefused(ConfigurationError):
    """The application was imported, or not, and says what is wrong with it."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.problems)
        self.store = refused.store
        """The URL of its store, as far as it is known; never to be shown."""


class BirthFailed(Exception):
    """No executor could be made this time."""


class Birth(NamedTuple):
    """A new executor, announced and waiting for the parent's word. The pidfd is the caller's."""

    pid: int
    pidfd: int


class Zygote:
    """The process that imported the application and makes executors. One serves all pools of a worker.

    Args:
        numeric_threads: of numeric libraries in each executor (`runwick.config.numeric`).
        preload: modules that it imports after the application, for executors to have them.
    """

    def __init__(
        self,
        on_event: Callable[[ExecutorEvent], None] = ignore,
        family: Family | None = None,
        *,
        numeric_threads: int = THREADS_USUAL,
        preload: tuple[str, ...] = (),
    ) -> None:
        self.family = Family() if family is None else family
        """What it shares with the zygote before it and the one after it."""
        self.grade: Grade | None = None
        """How strongly executors are fenced; None before there is a zygote."""
        self.kinds: frozenset[Kind] = frozenset()
        """What its executors can decode."""
        self.failed_boots = 0
        """How often in a row it could not be replaced."""
        self.on_failed_boot: list[Callable[[str, bool], None]] = []
        """Called each time it could not be replaced, with the reason and whether it is not tried again."""
        self._on_event = on_event
        self._variables = thread_variables(numeric_threads, os.environ)
        self._preload = preload
        self._running: ZygoteProcess | None = None
        self._available = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._bears = True
        self._children: set[int] = set()
        """Pids of the executors that it has made and that live."""
        self._childless = asyncio.Event()
        self._childless.set()
        self.family.join(self)

    @property
    def fence(self) -> FenceMemory:
        """Until when each executor may live, by its number."""
        return self.family.fence

    async def boot(self, target: str, app_dir: str | Path, timeout_s: float = BOOT_TIMEOUT_S) -> Manifest:
        """Execute it and have it import the application at `target`, looking in `app_dir` first.

        Raises:
            ConfigurationError: with everything that is wrong with the declarations; ``import_failed`` with the last
                lines of the traceback; ``boot_timeout`` when the import took longer than `timeout_s`. No process is
                left.
        """
        self._boot = _boot_message(target, app_dir, self._preload)
        self._boot_timeout_s = timeout_s
        return await self._execute()

    def keep(self) -> None:
        """From now on, on this event loop, replace it when it dies. A second call changes nothing."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._replace_when_dead(), name="zygote")
            self._keeper.add_done_callback(self._kept)

    async def fork(
        self, executor: int, descriptors: Descriptors, *, record_usage: bool, options: ExecutorOptions
    ) -> Birth:
        """Have it make an executor; waits while there is no zygote.

        Raises:
            BirthFailed: the zygote died over it or could not fork, or bears nobody any more.
        """
        while True:
            await self._available.wait()
            if not self._bears:
                raise BirthFailed("the application has been loaded anew")
            birth = asyncio.ensure_future(self._fork(Fork(executor, record_usage, options), descriptors))
            try:
                born = await asyncio.shield(birth)
            except asyncio.CancelledError:
                await asyncio.wait([birth])
                self._abandon(birth)
                raise
            if born is not None:
                return born

    async def _fork(self, request: Fork, descriptors: Descriptors) -> Birth | None:
        """Ask when it is this request's turn; None when there is no zygote any more by then."""
        async with self.family.turn:
            running = self._running
            if running is None:
                return None
            try:
                running.link.send(request, descriptors)
                answer, received = await running.receive(_FORK_TIMEOUT_S)
            except (LinkBroken, TimeoutError) as error:
                running.kill()
                raise BirthFailed(f"the zygote does not answer: {error or 'no answer in time'}") from None
            if isinstance(answer, Born) and answer.executor == request.executor and len(received) == 1:
                self._children.add(answer.pid)
                self._childless.clear()
                self.family.born(self, answer.pid, answer.executor, received[0])
                return Birth(answer.pid, received[0])
            for descriptor in received:
                os.close(descriptor)
            if isinstance(answer, NotBorn):
                raise BirthFailed(answer.reason)
            running.kill()
            raise BirthFailed(f"the zygote answered with {type(answer).__name__}")

    def _abandon(self, birth: asyncio.Future[Birth | None]) -> None:
        """Nobody wants this one any more: it is killed before it is given a word, and the sweep takes its status."""
        if birth.exception() is None and (born := birth.result()) is not None:
            pid, pidfd = born
            processes.kill(pidfd)
            self.forget(pid)
            os.close(pidfd)

    def forget(self, pid: int) -> None:
        """This executor is dead and its group is killed; call it before its pidfd is closed."""
        self.family.forget(pid)
        self._children.discard(pid)
        if not self._children:
            self._childless.set()

    def guard(self, pid: int) -> None:
        """Have it guard an executor that it has not made."""
        executor, pidfd = self.family.guarded[pid]
        self._say(Guard(pid, executor), [pidfd])

    def let_go(self, pid: int) -> None:
        """Have it guard this one no more."""
        self._say(Gone(pid))

    def _say(self, message: Guard | Gone, descriptors: Sequence[int] = ()) -> None:
        if self._running is not None:
            try:
                self._running.link.send(message, descriptors)
            except LinkBroken:
                # Without it, it would kill whoever has that number next, or fail to kill somebody.
                self._running.kill()

    async def sweep(self) -> None:
        """Kill what dead executors left behind; returns when nothing of it is left."""
        await self.family.sweep()

    def step_down(self) -> None:
        """Another zygote makes all executors from now on. It is not replaced any more when it dies."""
        self._bears = False
        self._available.set()
        if self._keeper is not None:
            self._keeper.cancel()

    async def outlive_children(self) -> None:
        """Wait until none of the executors that it has made lives. It bears no more."""
        async with self.family.turn:
            pass  # a birth that is under way
        await self._childless.wait()

    async def stop(self) -> None:
        """End it, and wait until it is gone. Executors should be gone already, if it is the last one: those that are
        not are killed."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        self._available.clear()
        async with self.family.turn:
            if self.family.others(self):
                for pid in self.family.guarded:
                    self.let_go(pid)
            running, self._running = self._running, None
            if running is not None:
                await self._end(running)
        # Now that no middle process is left, whatever was born too late has arrived here.
        await self.sweep()
        self.family.leave(self)

    async def _execute(self) -> Manifest:
        running = ZygoteProcess(self._variables)
        self.family.spared.add(running.process.pid)
        lock = self.family.run_lock
        try:
            running.link.send(self._boot, [self.fence.descriptor, *([] if lock is None else [lock])])
            answer, received = await running.receive(self._boot_timeout_s)
            for descriptor in received:
                os.close(descriptor)
        except TimeoutError:
            await self._discard(running)
            raise ConfigurationError([_too_slow(self._boot.target, self._boot_timeout_s)]) from None
        except LinkBroken as error:
            ending = await self._discard(running)
            raise ConfigurationError([_died(self._boot.target, ending, error)]) from None
        except BaseException:
            await self._discard(running)
            raise
        if isinstance(answer, Manifest) and answer.release == __version__:
            self._running = running
            self.grade, self.kinds = answer.grade, frozenset(answer.kinds)
            self._tell_of_the_living()
            self._available.set()
            return answer
        await self._discard(running)
        if isinstance(answer, Manifest):
            raise ConfigurationError([_other_release(answer)])
        if isinstance(answer, Refused) and answer.problems:
            raise ApplicationRefused(answer)
        raise ConfigurationError([_died(self._boot.target, None, f"it answered with {type(answer).__name__}")])

    def _kept(self, keeper: asyncio.Task[None]) -> None:
        """It is not replaced any more, for a reason that nobody foresaw: a worker that says nothing would be worse."""
        if not keeper.cancelled() and (error := keeper.exception()) is not None:
            for listener in self.on_failed_boot:
                listener(f"the zygote cannot be replaced: {type(error).__name__}: {error}", True)

    async def _replace_when_dead(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            assert self._running is not None
            running = self._running
            ending = await running.gone()
            died_s = loop.time()
            self._available.clear()
            # A birth that is under way finds out by itself; its descriptor must not be closed under it.
            async with self.family.turn:
                self._running = None
                self.family.spared.discard(running.process.pid)
                running.close()
            self._tell(EventKind.ZYGOTE_DIED, f"the zygote died: {ending}", running.process.pid)
            # A birth that was under way leaves an executor that was never announced.
            await self.sweep()
            await self._execute_until_it_lives()
            took_ms = (loop.time() - died_s) * 1000
            self._tell(EventKind.ZYGOTE_REPLACED, f"the zygote was replaced in {took_ms:.0f} ms", None, took_ms)

    async def _execute_until_it_lives(self) -> None:
        pause_s = _RETRY_FIRST_S
        while True:
            try:
                await self._execute()
            except (ConfigurationError, OSError) as error:
                self.failed_boots += 1
                reason = f"no new zygote could be executed: {error}"
                self._tell(EventKind.ZYGOTE_FAILED, reason)
                for listener in self.on_failed_boot:
                    listener(reason, False)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _RETRY_MAX_S)
            else:
                self.failed_boots = 0
                return

    def _tell_of_the_living(self) -> None:
        """Let it guard the executors of those before it."""
        for pid in self.family.guarded:
            self.guard(pid)

    async def _discard(self, running: ZygoteProcess) -> processes.Ending:
        running.kill()
        ending = await running.gone()
        self.family.spared.discard(running.process.pid)
        running.close()
        return ending

    async def _end(self, running: ZygoteProcess) -> None:
        running.link.close()
        try:
            async with asyncio.timeout(_END_TIMEOUT_S):
                await running.gone()
        except TimeoutError:
            running.kill()
            await running.gone()
        self.family.spared.discard(running.process.pid)
        running.close()

    def _tell(self, kind: EventKind, text: str, pid: int | None = None, milliseconds: float | None = None) -> None:
        self._on_event(ExecutorEvent(kind=kind, text=text, pid=pid, milliseconds=milliseconds))


def _boot_message(target: str, app_dir: str | Path, preload: tuple[str, ...]) -> Boot:
    """With the directory as it is now: a zygote executed later must find the same application."""
    return Boot(target, str(Path(app_dir).resolve()), preload)


def _too_slow(target: str, timeout_s: float) -> Problem:
    message = f"the import had not ended after {timeout_s:g} s. Move slow work out of the import, into a provider."
    return Problem("boot_timeout", target, message)


def _other_release(manifest: Manifest) -> Problem:
    message = f"release {manifest.release} is installed now, but this supervisor is {__version__}. Restart it."
    return Problem("reload_refused", "runwick", message)


def _died(target: str, ending: processes.Ending | None, error: object) -> Problem:
    how = f"{error}" if ending is None else f"{ending} ({error})"
    return Problem("import_failed", target, f"the process that imported it gave no answer: {how}")
