"""R9: what somebody with access to a Redis server can do to it under load, each thing once.

::

    it could lose what it confirms ─▶ new work is refused within the interval of the looks, readiness is red, it heals
    it forgets functions or connections, is busy, a replica, paused ─▶ whoever calls is told the truth, it heals
    it is emptied ─▶ nothing is called a success any more, workers stop what they run and end, nobody makes a new store
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import redis.exceptions

from runwick.contracts.health import HealthStatus
from runwick.health.status_file import read_status_files, wrong_of
from scripts.servers.redis import RedisServer
from tests.chaos.application import LEASE_MS, RECHECK_S
from tests.chaos.clients import now_ms
from tests.chaos.field import Field
from tests.chaos.history import History
from tests.kills.fire import wait_for

_UNSAFE: Final = {"appendfsync": "everysec", "appendonly": "no", "maxmemory-policy": "allkeys-lru"}
_SAFE: Final = {"appendfsync": "always", "appendonly": "yes", "maxmemory-policy": "noeviction"}
_ON_A_BUSY_MACHINE_MS: Final = 1_500
"""By which what happens in time may be noted late."""
_BROKEN: Final = frozenset({"store_history_broken", "store_identity_mismatch"})
_HOLD_S: Final = 0.7
"""How long what heals by itself lasts."""


def hostile(store: str, seed: int) -> History:
    """All of it, the emptying in a store of its own: no history can be read from one that is empty."""
    with Field(store, seed) as field, field.supervisor() as supervisor:
        field.loaded("the first runs")
        for name in _UNSAFE:
            _set_unsafe(field, name)
        for trouble in (_flush_functions, _end_all_connections, _keep_busy, _make_a_replica, _pause_clients):
            trouble(field)
            field.loaded(f"runs after: {field.faults[-1].what}", marks=20)
        assert supervisor.poll() is None, "the supervisor ended"
        supervisor.terminate()
        assert supervisor.wait(60) == 0
        field.drained()
        history = field.history()
    with Field(store, seed + 1) as field:
        _empty(field)
        history.faults = [*history.faults, *field.faults]
    return history


def _set_unsafe(field: Field, name: str) -> None:
    """The server may lose what it confirms, until somebody sets it right."""
    server, since_ms = _server(field), now_ms()
    field.fault(f"CONFIG SET {name} {_UNSAFE[name]}")
    server.execute("CONFIG", "SET", name, _UNSAFE[name])
    wait_for(lambda: _refusals(field, since_ms, {"store_profile_mismatch"}) != [], f"a dispatch to be refused: {name}")
    refused_ms = _refusals(field, since_ms, {"store_profile_mismatch"})[0]
    assert refused_ms - since_ms < RECHECK_S * 1_000 + _ON_A_BUSY_MACHINE_MS, f"{name} was seen late"
    wait_for(lambda: _is_red(field, name), f"producer and worker not to be ready: {name}")
    assert _confirmed(field, refused_ms, now_ms()) == [], f"there was new work while {name} was unsafe"
    server.execute("CONFIG", "SET", name, _SAFE[name])
    wait_for(lambda: _is_green(field), f"producer and worker to be ready again: {name}")
    field.loaded(f"runs with {name} as it must be")


def _flush_functions(field: Field) -> None:
    """Whoever meets a server without the functions loads them, and nobody is told of it."""
    server, since_ms = _server(field), now_ms()
    field.fault("SCRIPT FLUSH and FUNCTION FLUSH")
    server.execute("SCRIPT", "FLUSH")
    server.execute("FUNCTION", "FLUSH")
    wait_for(lambda: server.execute("FUNCTION", "LIST") != [], "somebody to load the functions")
    field.loaded("runs with them", marks=20)
    assert _refusals(field, since_ms, {"store_unavailable"}) == []


def _end_all_connections(field: Field) -> None:
    field.fault("CLIENT KILL of all connections")
    for kind in ("NORMAL", "PUBSUB"):
        _server(field).execute("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


def _keep_busy(field: Field) -> None:
    """Somebody's script never ends, until it is killed."""
    server, since_ms = _server(field), now_ms()
    server.execute("CONFIG", "SET", "busy-reply-threshold", 20)
    field.fault("a script that never ends")
    with _meanwhile(lambda: server.execute("EVAL", "while true do end", 0)):
        wait_for(lambda: _is_told(field, since_ms, {"store_unavailable"}), "a caller to be told that it is busy")
        server.execute("SCRIPT", "KILL")
    server.execute("CONFIG", "SET", "busy-reply-threshold", 5_000)


def _make_a_replica(field: Field) -> None:
    """Of a primary that does not answer, so that its own data stays."""
    server, since_ms = _server(field), now_ms()
    field.fault("REPLICAOF somebody else")
    server.execute("REPLICAOF", "127.0.0.1", 1)
    wait_for(lambda: _is_told(field, since_ms, {"store_unavailable"}), "a caller to be told that it is a replica")
    time.sleep(_HOLD_S)
    server.execute("REPLICAOF", "NO", "ONE")


def _pause_clients(field: Field) -> None:
    field.fault("CLIENT PAUSE")
    _server(field).execute("CLIENT", "PAUSE", round(_HOLD_S * 1_000), "ALL")


def _empty(field: Field) -> None:
    """Everything is gone, the store's identity as well."""
    server = _server(field)
    with field.supervisor() as supervisor:
        field.loaded("load before all is gone", marks=20)
        wait_for(lambda: _is_green(field), "producer and worker to be ready")
        field.fault("FLUSHALL")
        server.execute("FLUSHALL")
        gone_ms = now_ms()
        assert supervisor.wait(60) != 0, "a worker whose store is gone has failed"
        wait_for(lambda: field.processes() == [], "executors and zygote to follow their supervisor")
    last_mark_ms = field.last_mark_ms()
    assert last_mark_ms <= gone_ms + LEASE_MS + _ON_A_BUSY_MACHINE_MS, "an attempt went on that was nobody's any more"
    assert b"the store is not there any more" in field.output.read_bytes()
    wait_for(lambda: _is_told(field, gone_ms, _BROKEN), "a client to be told")
    wait_for(lambda: _is_incompatible(field), "the producer not to be ready")
    field.quiet()
    assert _confirmed(field, gone_ms, now_ms()) == [], "something was called a success in an empty store"
    with field.supervisor() as late:
        assert late.wait(60) != 0, "a worker started without a store"
    assert server.execute("KEYS", "*") == [], "somebody made a new store"


def _refusals(field: Field, since_ms: int, codes: set[str] | frozenset[str]) -> list[int]:
    """When clients were refused since then with one of these codes."""
    return [line.at_ms for line in list(field.book.lines) if line.at_ms >= since_ms and line.code in codes]


def _is_told(field: Field, since_ms: int, codes: set[str] | frozenset[str]) -> bool:
    """Ask, and tell whether somebody was refused with one of these codes."""
    field.probe.dispatch(limited=False)
    return _refusals(field, since_ms, codes) != []


def _confirmed(field: Field, since_ms: int, until_ms: int) -> list[int]:
    """The dispatches that were asked for after the one time, and confirmed before the other."""
    lines = list(field.book.lines)
    asked = {line.call for line in lines if line.act in ("dispatch", "batch") and line.at_ms > since_ms}
    return [line.call for line in lines if line.what == "ok" and line.call in asked and line.at_ms < until_ms]


def _is_red(field: Field, name: str) -> bool:
    """Whether producer and worker say of themselves that they are not ready, and why."""
    (producer,) = field.rw.health().ready
    workers = [line for status in read_status_files(field.folder / "run") for line in wrong_of(status)]
    said = (producer.text, *workers)
    return producer.reason == "incompatible" and len(said) > 1 and all(name in text for text in said)


def _is_green(field: Field) -> bool:
    (producer,) = field.rw.health().ready
    workers = read_status_files(field.folder / "run")
    return producer.status is HealthStatus.HEALTHY and workers != [] and not any(map(wrong_of, workers))


def _is_incompatible(field: Field) -> bool:
    (producer,) = field.rw.health().ready
    return producer.reason == "incompatible" and "not there any more" in producer.text


@contextlib.contextmanager
def _meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Do that on another thread, which is over in the end; that it is cut short is no failure."""

    def run() -> None:
        with contextlib.suppress(redis.exceptions.RedisError):
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _server(field: Field) -> RedisServer:
    assert isinstance(field.server, RedisServer)
    return field.server
