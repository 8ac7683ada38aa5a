"""The health of this very process: what its store and its worker are seen to do, without waiting for either."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runwick import Job, Runwick
from runwick.contracts.errors import StoreUnavailable
from runwick.contracts.health import HealthStatus, RoleCheck, WorkerHealth
from runwick.contracts.stores import Act, Store
from runwick.health import store_watch
from runwick.health.pulse import Pulse
from runwick.health.watch import Watch
from runwick.runtime.ambient import SystemClock
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from tests.redis.asking import execute

PATIENCE_S = 20.0


class Late:
    """A clock that can be put forward."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + round(self.ahead_s * 1000)

    def steady_s(self) -> float:
        return time.monotonic() + self.ahead_s


class Moody:
    """The application's store, which answers only as it is told."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.answers = threading.Event()
        self.error: Exception | None = None
        self.is_asked_in_vain = False

    def check(self) -> None:
        self._store.check()

    def job(self, application: str, job_id: bytes) -> Act[Any]:
        return self._store.job(application, job_id)

    def run(self, act: Act[Any]) -> Any:
        while not self.answers.wait(0.005):
            self.is_asked_in_vain = True
        if self.error is not None:
            raise self.error
        return self._store.run(act)


@pytest.fixture
def rw(tmp_path: Path) -> Iterator[Runwick]:
    rw = Runwick("errands", store=f"sqlite:///{tmp_path}/errands.db")

    @rw.job("errands.run")
    class Run(Job):
        pass

    @rw.handler
    def run(job: Run) -> None: ...

    yield rw
    rw.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_watch, "PERIOD_S", 0.01)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"in vain: {what}"
        time.sleep(0.005)


def only(health: tuple[RoleCheck, ...]) -> tuple[str, str, str]:
    (check,) = health
    return check.role, check.status.value, check.reason


def test_a_producer_is_ready_when_its_store_has_answered(rw: Runwick) -> None:
    rw.migrate()
    assert only(rw.health().ready) == ("producer", "unhealthy", "starting")
    until(lambda: rw.health().status is HealthStatus.HEALTHY, "the first answer")
    assert only(rw.health().ready) == ("producer", "healthy", "ok")
    assert rw.health().live.status is HealthStatus.HEALTHY


def test_a_store_that_is_not_there_is_no_matter_of_time(rw: Runwick, quick: None) -> None:
    until(lambda: rw.health().ready[0].reason == "incompatible", "the refusal")
    assert rw.health().ready[0].status is HealthStatus.UNHEALTHY
    assert rw.health().live.status is HealthStatus.HEALTHY, "starting it anew would not help"
    rw.migrate()
    until(lambda: rw.health().status is HealthStatus.HEALTHY, "the answer of the store that is there now")


def test_a_server_that_is_set_unsafe_meanwhile_is_seen_until_it_is_set_right(empty_redis: str, quick: None) -> None:
    rw = Runwick("errands", store=empty_redis)
    until(lambda: rw.health().status is HealthStatus.HEALTHY, "the first answer")
    execute(empty_redis, "CONFIG", "SET", "appendfsync", "everysec")
    try:
        until(lambda: only(rw.health().ready) == ("producer", "unhealthy", "incompatible"), "the next look")
        assert "appendfsync=everysec" in rw.health().ready[0].text
    finally:
        execute(empty_redis, "CONFIG", "SET", "appendfsync", "always")
    until(lambda: rw.health().status is HealthStatus.HEALTHY, "the look after that")
    rw.close()


def test_nobody_waits_for_a_store_that_hangs(rw: Runwick, quick: None) -> None:
    rw.migrate()
    clock, moody = Late(), Moody(rw.store)
    watch = Watch("errands", lambda: moody, clock, roles=("management",))  # type: ignore[arg-type, return-value]
    moody.answers.set()
    until(lambda: watch.health().status is HealthStatus.HEALTHY, "the first answer")
    moody.answers.clear()
    until(lambda: moody.is_asked_in_vain, "a call that hangs")
    clock.ahead_s = 2.0
    assert only(watch.health().ready) == ("management", "degraded", "store_unavailable")
    clock.ahead_s = 32.0
    assert only(watch.health().ready) == ("management", "unhealthy", "store_unavailable")
    moody.answers.set()
    until(lambda: watch.health().status is HealthStatus.HEALTHY, "the store's return")
    watch.close()


def test_what_a_foreign_error_says_is_told_to_nobody(rw: Runwick, quick: None) -> None:
    rw.migrate()
    moody = Moody(rw.store)
    moody.answers.set()
    moody.error = RuntimeError("password=hunter2")
    watch = Watch("errands", lambda: moody, SystemClock(), roles=("producer",))  # type: ignore[arg-type, return-value]
    until(lambda: watch.health().ready[0].text == "RuntimeError", "the error")
    moody.error = StoreUnavailable("store_unavailable", "the server has gone away")
    until(lambda: watch.health().ready[0].text == "the server has gone away", "the store's own words")
    watch.close()


def test_a_worker_at_work_is_a_role_of_its_process(rw: Runwick, quick: None) -> None:
    rw.migrate()

    def roles() -> dict[str, tuple[str, str]]:
        return {check.role: (check.status.value, check.reason) for check in rw.health().ready}

    async def life() -> None:
        async with rw.worker() as worker:
            await asyncio.to_thread(until, lambda: roles().get("worker") == ("healthy", "ok"), "a worker that is well")
            seen = worker.pulse.seen
            assert seen is not None
            await asyncio.to_thread(until, lambda: worker.pulse.seen is not seen, "the next tick")
            assert rw.health().live.reason == "ok"
        assert "worker" not in roles()

    asyncio.run(life())


def test_a_worker_whose_timer_stalled_ends_the_life_of_its_process(rw: Runwick) -> None:
    clock, bus = Late(), Bus()
    pulse = Pulse(bus, clock)
    watch = Watch("errands", lambda: rw.store, clock, roles=(), pulse=lambda: pulse)
    assert (watch.health().live.reason, only(watch.health().ready)) == ("ok", ("worker", "unhealthy", "starting"))
    bus.publish(events.HealthSeen(WorkerHealth(HealthStatus.HEALTHY, True, ())))
    assert (watch.health().live.reason, only(watch.health().ready)) == ("ok", ("worker", "healthy", "ok"))
    clock.ahead_s = 31.0
    assert (watch.health().live.reason, only(watch.health().ready)) == ("stalled", ("worker", "degraded", "stale"))
    watch.close()


def test_closing_ends_the_watch_and_the_next_look_begins_another(rw: Runwick) -> None:
    def watching() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "runwick-health-errands"]

    rw.migrate()
    until(lambda: rw.health().status is HealthStatus.HEALTHY, "the first answer")
    assert len(watching()) == 1
    rw.close()
    assert watching() == []
    assert only(rw.health().ready) == ("producer", "unhealthy", "starting")
    until(lambda: rw.health().status is HealthStatus.HEALTHY, "the first answer of the second watch")


def test_a_forked_child_looks_for_itself(rw: Runwick) -> None:
    rw.migrate()
    until(lambda: rw.health().status is HealthStatus.HEALTHY, "the first answer")
    child = os.fork()
    if child == 0:
        try:
            is_new = only(rw.health().ready) == ("producer", "unhealthy", "starting")
            until(lambda: rw.health().status is HealthStatus.HEALTHY, "the first answer in the child")
            os._exit(0 if is_new else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
