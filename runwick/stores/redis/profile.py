"""What a server must be, so that what it has confirmed survives its crash: one look, and the watch that repeats it.

::

    at the start, at each new connection, every `profile_recheck_interval`
        INFO, CONFIG GET, MODULE LIST on a connection of their own ─▶ fit ─▶ go on (again)
                                                     └─ unfit, or it does not say: unfit ─▶ at the start: refused
                                                                                            later: no new work

What was begun may end: settlements, renewals, releases and reads go on meanwhile. A server that is away is not unfit.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import redis.exceptions

from runwick.contracts.errors import StoreError, StoreProfileMismatch
from runwick.runtime.forks import Forkable
from runwick.stores.redis import faults

PROFILE: Final = "redis.aof-always"

SETTINGS: Final = {
    "appendonly": "yes",
    "appendfsync": "always",
    "no-appendfsync-on-rewrite": "no",
    "maxmemory-policy": "noeviction",
    "aof-load-truncated": "no",
}
"""What they must be, by name."""
VERSION_MIN: Final = (8, 2)

_TOPOLOGY: Final = {"role": "master", "redis_mode": "standalone", "cluster_enabled": "0"}
_HEALTH: Final = {"aof_enabled": "1", "aof_last_write_status": "ok"}
_WRITTEN: Final = {"aof_rewrite_in_progress": "0", "aof_rewrite_scheduled": "0", "aof_last_bgrewrite_status": "ok"}
"""When a file that was switched on again is one: until it was written whole, a crash brings back the one before."""
_NOT_SAID: Final = "unverifiable"
_UNVERIFIABLE: Final = frozenset({"ERR", "NOPERM"})
"""Answers of a server that does not say how it is set: a command renamed away, or an ACL."""
_INTERVAL_SHARE: Final = 0.9
"""The next look begins after so much of the interval, so that it has ended within it."""

NEW_WORK: Final = frozenset({"dispatch", "claim", "begin", "register", "retry", "rerun"})
"""Acts that are refused while the server is unfit."""


class Fitness(NamedTuple):
    """A server at one moment."""

    notes: tuple[str, ...]
    """What the operator should know although nothing is refused."""
    fault: StoreProfileMismatch | None
    """Why it is unfit; None when it is fit."""


def examine(ask: Callable[..., Any], shown: str, *, was_unfit: bool = False) -> Fitness:
    """Look once.

    Args:
        ask: sends a command and answers what the server does.
        shown: the server's address for people.
        was_unfit: at the look before, so that its append-only file may have been switched off.

    Raises:
        redis.exceptions.RedisError: it could not be asked now.
    """
    info = _info(_said(ask, "INFO"))
    set_to = _said(ask, "CONFIG", "GET", *SETTINGS)
    modules = _said(ask, "MODULE", "LIST")
    settings = {_text(name): _text(value) for name, value in (set_to or {}).items()}
    fault = (
        _bad_version(info, shown)
        or _unfit(info, _TOPOLOGY, "topology_unsupported", shown, "connect to one standalone primary")
        or _unfit(settings, SETTINGS, "store_profile_mismatch", shown, "set {}, or confirmed jobs could be lost")
        or _unfit(info, _HEALTH, "store_profile_mismatch", shown, "mend its append-only file")
        or (_unfit(info, _WRITTEN, "store_profile_mismatch", shown, "wait until that is done") if was_unfit else None)
    )
    if fault is None and modules is None:
        fault = _mismatch("store_profile_mismatch", f"MODULE LIST {_NOT_SAID}", shown, "")
    return Fitness(_notes(info, modules or [], shown), fault)


def _said(ask: Callable[..., Any], *command: str) -> Any:
    """The server's answer; None where it does not say."""
    try:
        return ask(*command)
    except redis.exceptions.ResponseError as error:
        if faults.code_of(error) not in _UNVERIFIABLE:
            raise
        return None


def _bad_version(info: Mapping[str, str], shown: str) -> StoreProfileMismatch | None:
    found = info.get("redis_version")
    if found is None:
        return _mismatch("store_profile_mismatch", f"redis_version {_NOT_SAID}", shown, "")
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdecimal())
    if numbers >= VERSION_MIN:
        return None
    wanted = ".".join(str(number) for number in VERSION_MIN)
    return StoreProfileMismatch(
        "server_version_unsupported", f"{shown} is Redis {found}, Runwick needs {wanted} or newer; upgrade the server"
    )


def _unfit(
    found: Mapping[str, str], wanted: Mapping[str, str], code: str, shown: str, mend: str
) -> StoreProfileMismatch | None:
    bad = [name for name in wanted if found.get(name) != wanted[name]]
    if not bad:
        return None
    seen = ", ".join(f"{name}={found[name]}" if name in found else f"{name} {_NOT_SAID}" for name in bad)
    return _mismatch(code, seen, shown, mend.format(", ".join(f"{name} {wanted[name]}" for name in bad)))


def _mismatch(code: str, found: str, shown: str, mend: str) -> StoreProfileMismatch:
    if _NOT_SAID in found:
        code, mend = "store_profile_mismatch", "allow INFO, CONFIG GET and MODULE LIST to Runwick's user"
    return StoreProfileMismatch(code, f"{shown} has {found}, so that no new work is taken; {mend}")


def _notes(info: Mapping[str, str], modules: list[Any], shown: str) -> tuple[str, ...]:
    notes = []
    replicas = info.get("connected_slaves", "0")
    if replicas != "0":
        notes.append(
            f"{shown} has connected replicas ({replicas}): one that is promoted is another history, which Runwick does "
            "not follow"
        )
    # Those that came with the server have no path.
    names = sorted(_text(module[b"name"]) for module in modules if module.get(b"path"))
    if names:
        notes.append(f"{shown} has loaded the modules {', '.join(names)}")
    return tuple(notes)


def _info(said: bytes | None) -> dict[str, str]:
    lines = _text(said or b"").splitlines()
    return {name: value for name, colon, value in (line.partition(":") for line in lines) if colon}


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


class Watch(Forkable):
    """Repeats the look while the store is in use; an executor, which has no threads, looks when it next needs to know.

    Args:
        look: looks once, and keeps what it finds.
        interval_s: how often.
    """

    def __init__(self, look: Callable[[], None], interval_s: float) -> None:
        super().__init__()
        self._look: Final = look
        self._pause_s: Final = interval_s * _INTERVAL_SHARE
        self._looked_at_s = time.monotonic()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; what `close` ends."""
        self._end = threading.Event()
        self._looked_at_s = time.monotonic()
        self._thread = threading.Thread(target=self._live, args=(self._end,), name="runwick-redis-profile", daemon=True)
        self._thread.start()

    def look_if_due(self) -> None:
        """Look on this thread, if it is time."""
        if time.monotonic() - self._looked_at_s >= self._pause_s:
            self._look_once()

    def close(self, wait_s: float) -> None:
        """End the thread; one that is in the middle of a look is waited for so long."""
        thread, self._thread = self._thread, None
        self._end.set()
        if thread is not None:
            thread.join(wait_s)

    def _live(self, end: threading.Event) -> None:
        while not end.wait(self._pause_s):
            self._look_once()

    def _look_once(self) -> None:
        self._looked_at_s = time.monotonic()
        with contextlib.suppress(StoreError):  # a server that is away says so to whoever calls
            self._look()

    def after_fork_in_child(self) -> None:
        self._end = threading.Event()
        self._thread = None
