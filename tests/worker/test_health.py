"""Whether a worker can do its work, as it says itself."""

import pytest

from runwick.contracts.errors import AdmissionClosed, StoreHistoryBroken, StoreUnavailable
from runwick.contracts.health import HealthStatus, RoleHealth, WorkerHealth
from runwick.telemetry import events
from tests.worker.ground import LANE, OTHER_LANE
from tests.worker.life import QUICK, Life, until
from tests.worker.store import EVERY

AWAY = StoreUnavailable("store_unavailable", "away")
NOBODY = RoleHealth("pool reports", HealthStatus.UNHEALTHY, "no_executors", "0 of 2 executors are ready")
FEW = RoleHealth("pool reports", HealthStatus.DEGRADED, "executors_missing", "1 of 2 executors is ready")


def wrong(health: WorkerHealth) -> dict[str, str | None]:
    return {role.role: role.code for role in health.roles if role.status is not HealthStatus.HEALTHY}


def changes(life: Life) -> list[WorkerHealth]:
    """What its bus will say of health."""
    heard: list[WorkerHealth] = []
    life.bus.listen(events.HealthChanged, lambda event: heard.append(event.health))
    return heard


def test_before_and_after_its_life_it_takes_no_work() -> None:
    life = Life()

    async def script(life: Life) -> None:
        await until(lambda: life.backend.started, "the start")
        health = life.worker.health()
        assert (health.status, health.ready, health.grade) == (HealthStatus.HEALTHY, True, "watched")
        life.worker.stop()
        health = life.worker.health()
        assert (health.status, health.ready, wrong(health)) == (HealthStatus.DEGRADED, False, {"worker": "draining"})

    assert not life.worker.health().ready
    life.live(script)
    assert not life.worker.health().ready


def test_it_is_as_bad_as_its_worst_pool() -> None:
    life = Life(lanes=((LANE,), (OTHER_LANE,)), options=QUICK)

    async def script(life: Life) -> None:
        await until(lambda: life.backend.started, "the start")
        life.backend.state = FEW
        health = life.worker.health()
        assert (health.status, health.ready) == (HealthStatus.DEGRADED, True), "one executor is enough to work"
        life.backends[1].state = NOBODY
        health = life.worker.health()
        assert (health.status, health.ready) == (HealthStatus.UNHEALTHY, False)
        life.worker.stop()

    life.live(script)


def test_a_store_that_is_away_and_claims_that_are_not_admitted_are_told_apart() -> None:
    life = Life(options=QUICK)

    async def script(life: Life) -> None:
        await until(lambda: "claim" in life.store.calls, "a claim")
        life.store.fails["claim"] = AdmissionClosed("admission_closed", "drained")
        await until(lambda: wrong(life.worker.health()) == {"admission": "admission_closed"}, "the refusal")
        assert not life.worker.health().ready
        life.store.fails[EVERY] = AWAY
        life.store.fails["claim"] = AWAY
        await until(lambda: wrong(life.worker.health()).get("store") == "store_unavailable", "the outage")
        assert life.worker.health().status is HealthStatus.UNHEALTHY
        life.store.fails.clear()
        await until(lambda: life.worker.health().ready, "its end")
        life.worker.stop()

    life.live(script)


def test_a_broken_history_is_the_last_that_is_wrong() -> None:
    life = Life(options=QUICK)
    found: list[dict[str, str | None]] = []
    life.bus.listen(events.HistoryBroken, lambda _: found.append(wrong(life.worker.health())))

    async def script(life: Life) -> None:
        life.store.fails["renew"] = StoreHistoryBroken("store_identity_mismatch", "this is another store")

    with pytest.raises(StoreHistoryBroken):
        life.live(script)
    assert found == [{"store": "store_history_broken"}]
    assert [role.text for role in life.worker.health().roles] == ["store_identity_mismatch: this is another store"]


def test_changes_are_told_once_and_figures_are_no_change() -> None:
    life = Life(options=QUICK)
    told = changes(life)
    watch = life.worker._health

    async def script(life: Life) -> None:
        await until(lambda: life.backend.started, "the start")
        await watch.run_once()
        assert told == [], "that all is well needs no telling"
        for state in (NOBODY, worded(NOBODY, "0 of 3 executors are ready"), FEW):
            life.backend.state = state
            await watch.run_once()
        life.backend.state = RoleHealth("pool reports", HealthStatus.HEALTHY)
        await watch.run_once()
        assert [health.status for health in told] == ["unhealthy", "degraded", "healthy"]
        life.worker.stop()

    life.live(script)


def worded(role: RoleHealth, text: str) -> RoleHealth:
    return RoleHealth(role.role, role.status, role.code, text)
