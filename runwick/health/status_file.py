"""A worker's status file: how a process without a web server tells others on its host how it is.

    the command makes it and locks it ─▶ written when health changes, and every 10 s ─▶ removed at the end
    `read_status_files`  ─┬─ locked: its process lives; what it says is judged by its age
                          └─ not locked: left by one that was killed; it says nothing, and the next one removes it

It lies beside the run file (`runwick.runtime.runfile`), in a directory of the worker's user alone. Unlike that one's,
its lock belongs to the worker's process and not to its executors, so that it ends with that process.
"""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from runwick.contracts.ambient import Clock
from runwick.health.checks import PERIOD_S, WorkerSeen, wrong_roles
from runwick.runtime.rundir import RunDir
from runwick.telemetry import events
from runwick.telemetry.bus import Bus

_SUFFIX: Final = ".health"
_TEXT_MAX_BYTES: Final = 256 * 1024
_READS_MAX: Final = 5
"""A file that is being written is read again, so often at most."""
_READ_AGAIN_S: Final = 0.01


class Status(msgspec.Struct, frozen=True):
    """What a status file says."""

    program: str
    """The command as it is typed."""
    worker: str
    """Its id, as hexadecimal digits."""
    process: int
    host: str
    application: str | None = None
    """None before the application is loaded."""
    seen: WorkerSeen | None = None
    """None before the worker has begun. By the host's steady clock."""


class StatusFile:
    """This worker's own."""

    def __init__(self, path: Path, descriptor: int, status: Status, clock: Clock) -> None:
        self._path = path
        self._descriptor = descriptor
        self._status = status
        self._clock = clock
        self._is_open = True
        self._write()

    @classmethod
    def create(cls, folder: Path, worker: bytes, program: str, clock: Clock) -> "StatusFile":
        """Make the file of the worker with this id, and lock it. Those of dead ones are removed.

        Raises:
            OSError: it cannot be made there.
        """
        for other in folder.glob(f"*{_SUFFIX}"):
            _remove_if_left(other)
        path = folder / f"{worker.hex()}{_SUFFIX}"
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if os.fstat(descriptor).st_nlink:
                    return cls(
                        path, descriptor, Status(program, worker.hex(), os.getpid(), socket.gethostname()), clock
                    )
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # another start found it before it was locked, and took it for a dead one's

    def follow(self, bus: Bus, application: str) -> None:
        """Tell what the worker says on this bus."""
        self._status = msgspec.structs.replace(self._status, application=application)
        bus.listen(events.HealthSeen, self._hear)

    def close(self) -> None:
        """The worker is over. A second call changes nothing."""
        if self._is_open:
            self._is_open = False
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)

    def _hear(self, event: events.HealthSeen) -> None:
        now_s, written = self._clock.steady_s(), self._status.seen
        is_news = written is None or written.health.facts != event.health.facts
        if not is_news and written is not None and now_s - written.at_s < PERIOD_S:
            return
        self._status = msgspec.structs.replace(self._status, seen=WorkerSeen(event.health, now_s))
        with contextlib.suppress(OSError):  # a full disk: the age of what is there says it
            self._write()

    def _write(self) -> None:
        text = msgspec.json.encode(self._status)
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))


def open_status_file(found: RunDir, worker: bytes, program: str, clock: Clock) -> tuple[StatusFile | None, str | None]:
    """The file of the worker with this id; or None, and why there is none if nothing else has said it."""
    if found.path is None:
        return None, None
    try:
        return StatusFile.create(found.path, worker, program, clock), None
    except OSError as error:
        return (
            None,
            f"no status file can be made in {found.path}: {error.strerror}. runwick health will not see this one",
        )


def read_status_files(folder: Path) -> list[Status]:
    """What the workers that live on this host have written there, in the order of their start."""
    host = socket.gethostname()
    return [status for status in _living(folder) if status.host == host]


def wrong_of(status: Status) -> list[str]:
    """What keeps that worker from being healthy, a line for each thing, by its own last words."""
    if status.seen is None:
        return []
    return [f"{role.role}: {role.text or role.code}" for role in wrong_roles(status.seen.health)]


def _living(folder: Path) -> Iterator[Status]:
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # it has ended meanwhile
        try:
            if not _is_left(descriptor) and (status := _read(descriptor)) is not None:
                yield status
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> Status | None:
    for _ in range(_READS_MAX):
        try:
            return msgspec.json.decode(os.pread(descriptor, _TEXT_MAX_BYTES, 0), type=Status)
        except (msgspec.DecodeError, UnicodeDecodeError):
            time.sleep(_READ_AGAIN_S)
    return None


def _is_left(descriptor: int) -> bool:
    """Whether nobody who lives has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_if_left(path: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            if _is_left(descriptor):
                path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)
