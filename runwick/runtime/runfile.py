"""A worker's run file: the proof, on one host, that a worker is dead with everything it ran.

    start ─▶ makes its file and locks it ─▶ every process of the worker holds the lock ─▶ good-bye: the file is removed
                                                │ the last of them is gone: the kernel lets the lock go
    next start ─▶ files of the same application and store ─┬─ gets the lock: dead ─▶ recovers, removes the file
                                                           └─ somebody holds it: the leases decide

The lock is one on the open file (flock), which forks and sent descriptors share and which ends with the last of them; a
lock of a process (fcntl) would not be inherited. Whoever recovers holds the lock of the dead one meanwhile, so that of
two starters one does it. A file proves nothing about other hosts, and none is trusted on a network file system.
`follow` ties a file to what a worker says of its life.
"""

import asyncio
import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from runwick.contracts.errors import RunwickError
from runwick.runtime.rundir import LEASES_DECIDE, RunDir
from runwick.telemetry import events
from runwick.telemetry.bus import Bus

WAIT_S: Final = 3.0
"""How long the death of a predecessor is waited for: its zygote may take a moment to kill what it left."""
_RETRY_S: Final = 0.02
_SUFFIX: Final = ".run"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_TEXT_MAX_BYTES: Final = 4096


class _About(msgspec.Struct, frozen=True):
    """What a run file says."""

    application: str
    store_id: bytes
    host: str
    boot_id: str
    """Of this start of the host's system; locks do not outlive it."""


class RunFile:
    """This worker's own."""

    def __init__(self, path: Path, worker: bytes, descriptor: int) -> None:
        self.folder = path.parent
        self.worker = worker
        self.descriptor = descriptor
        """Whoever has it, by a fork or over a socket, holds the lock."""
        self._path = path
        self._is_open = True
        self._stays = False
        """Whether the next one who starts must find it."""

    @classmethod
    def create(cls, folder: Path, worker: bytes) -> "RunFile":
        """Make the file of the worker with this id, and lock it.

        Raises:
            OSError: it cannot be made there.
        """
        path = folder / f"{worker.hex()}{_SUFFIX}"
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if os.fstat(descriptor).st_nlink:
                    return cls(path, worker, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # a starter found it before it was locked, and took it for rubbish

    def describe(self, application: str, store_id: bytes) -> None:
        """Say whose work it is, before any is taken.

        Raises:
            OSError: it cannot be written.
        """
        about = _About(application, store_id, socket.gethostname(), _boot_id())
        self._stays = True
        os.pwrite(self.descriptor, msgspec.json.encode(about), 0)

    def remove(self) -> None:
        """Nothing of this worker has to be recovered. Its processes may hold the lock on."""
        self._stays = False
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the lock, which ends when everybody has. The file goes too, unless the next start must find it. A
        second call changes nothing."""
        if self._is_open:
            self._is_open = False
            if not self._stays:
                self._path.unlink(missing_ok=True)
            os.close(self.descriptor)


def open_run_file(found: RunDir, worker: bytes) -> tuple[RunFile | None, str | None]:
    """The file of the worker with this id; or None, and why there is none."""
    if found.path is None:
        return None, found.note
    try:
        return RunFile.create(found.path, worker), None
    except OSError as error:
        return None, f"no run file can be made in {found.path}: {error.strerror}. {LEASES_DECIDE}"


class Predecessor:
    """The file of another worker of the same application and store, dead or alive."""

    def __init__(self, path: Path, worker: bytes) -> None:
        self.worker = worker
        self._path = path
        self._descriptor: int | None = None

    @property
    def is_there(self) -> bool:
        """Whether there is something to recover yet: it has said no good-bye, and nobody else was faster."""
        return self._path.exists()

    def is_proven_dead(self) -> bool:
        """Try once to get the lock, which nobody who lives has let go of. It is kept until `recovered` or `let_go`."""
        self._descriptor = _locked(self._path)
        return self._descriptor is not None

    def recovered(self) -> None:
        """Everything that it left is closed."""
        self._path.unlink(missing_ok=True)
        self.let_go()

    def let_go(self) -> None:
        """Leave it as it is."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def follow(
    run_file: RunFile,
    bus: Bus,
    application: str,
    store_id: Callable[[], bytes | None],
    inherit: Callable[[bytes], Awaitable[object]],
) -> None:
    """Keep the file true while its worker lives. When it is ready, which is before it takes any work, the file says so,
    and what dead ones left is recovered beside its work; when it has stopped and left nothing, the file can go.

    Args:
        bus: where the worker says what happens, on its event loop.
        store_id: the store's, which is known when the worker is ready.
        inherit: closes everything that the worker with this id left.
    """
    recovering: set[asyncio.Task[None]] = set()

    def ready(_: events.WorkerReady) -> None:
        store = store_id()
        assert store is not None, "a worker that is ready has met its store"
        run_file.describe(application, store)
        left = predecessors(run_file.folder, application, store, own=run_file.worker)
        task = asyncio.get_running_loop().create_task(recover_dead(left, inherit), name="recovery of predecessors")
        recovering.add(task)
        task.add_done_callback(recovering.discard)

    def stopped(event: events.WorkerStopped) -> None:
        for task in recovering:
            task.cancel()
        if not event.left_to_leases:
            run_file.remove()

    bus.listen(events.WorkerReady, ready)
    bus.listen(events.WorkerStopped, stopped)


def predecessors(folder: Path, application: str, store_id: bytes, *, own: bytes) -> list[Predecessor]:
    """Other workers of this application and store that ran on this host and have said no good-bye.

    Files without a word in them, of workers that died before they took any work, are removed.
    """
    found = []
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        with contextlib.suppress(ValueError, OSError):
            worker = bytes.fromhex(path.stem)
            about = _read(path)
            if about is None:
                _remove_rubbish(path)
            elif worker != own and (about.application, about.store_id) == (application, store_id) and _was_here(about):
                found.append(Predecessor(path, worker))
    return found


async def recover_dead(
    left: Sequence[Predecessor], inherit: Callable[[bytes], Awaitable[object]], *, within_s: float = WAIT_S
) -> None:
    """Have each of these recovered as soon as it is proven dead. Those that are not within that time are left to their
    leases, and so are those that the store does not let recover now.

    Args:
        inherit: closes everything that the worker with this id left.
    """
    waiting = list(left)
    until_s = time.monotonic() + within_s
    while waiting := [one for one in waiting if one.is_there]:
        for one in list(waiting):
            if one.is_proven_dead():
                waiting.remove(one)
                await _recover(one, inherit)
        if not waiting or time.monotonic() >= until_s:
            return
        await asyncio.sleep(_RETRY_S)


async def _recover(dead: Predecessor, inherit: Callable[[bytes], Awaitable[object]]) -> None:
    try:
        await inherit(dead.worker)
    except RunwickError:
        dead.let_go()  # told by the worker; the file says the same to the next one who starts
    except BaseException:
        dead.let_go()
        raise
    else:
        dead.recovered()


def _read(path: Path) -> _About | None:
    with path.open("rb") as file:
        text = file.read(_TEXT_MAX_BYTES)
    try:
        return msgspec.json.decode(text, type=_About)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _was_here(about: _About) -> bool:
    """Whether its lock can be known here. After a new start of the host it is gone with all who held it; a copy of the
    file on another host's disk says nothing."""
    return about.boot_id == _boot_id() or about.host == socket.gethostname()


def _remove_rubbish(path: Path) -> None:
    descriptor = _locked(path)
    if descriptor is not None:
        if _read(path) is None:
            path.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock of the file at `path`; None when somebody else does, or it cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink:
            return descriptor
    except BlockingIOError:
        pass
    os.close(descriptor)
    return None


def _boot_id() -> str:
    return _BOOT_ID.read_text().strip()
