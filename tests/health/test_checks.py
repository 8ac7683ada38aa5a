"""What was seen, judged."""

import pytest

from runwick.contracts.health import HealthStatus, ProcessHealth, RoleCheck, RoleHealth, WorkerHealth, worst
from runwick.health.checks import Now, StoreSeen, WorkerSeen, check_live, check_store, check_worker

HEALTHY, DEGRADED, UNHEALTHY = HealthStatus
NOW = Now(1_000.0, 5_000_000)


def ago(seconds: float) -> float:
    return NOW.steady_s - seconds


@pytest.mark.parametrize(
    ("seen", "status", "reason"),
    [
        pytest.param(StoreSeen(), UNHEALTHY, "starting", id="nothing is known yet"),
        pytest.param(StoreSeen(asked_s=ago(0.5)), UNHEALTHY, "starting", id="the first answer may come yet"),
        pytest.param(StoreSeen(asked_s=ago(1.5)), UNHEALTHY, "store_unavailable", id="the first answer does not come"),
        pytest.param(StoreSeen(answered_s=ago(9)), HEALTHY, "ok", id="it answers"),
        pytest.param(StoreSeen(answered_s=ago(9), asked_s=ago(0.5)), HEALTHY, "ok", id="it may answer in time"),
        pytest.param(
            StoreSeen(answered_s=ago(12), asked_s=ago(2)), DEGRADED, "store_unavailable", id="over its budget"
        ),
        pytest.param(
            StoreSeen(answered_s=ago(45), asked_s=ago(35)), UNHEALTHY, "store_unavailable", id="a call that hangs"
        ),
        pytest.param(
            StoreSeen(answered_s=ago(35), failing_since_s=ago(29.9)), DEGRADED, "store_unavailable", id="fails briefly"
        ),
        pytest.param(
            StoreSeen(answered_s=ago(40), failing_since_s=ago(30)), UNHEALTHY, "store_unavailable", id="fails for long"
        ),
        pytest.param(StoreSeen(failing_since_s=ago(1)), UNHEALTHY, "store_unavailable", id="it has never answered"),
        pytest.param(StoreSeen(answered_s=ago(31)), DEGRADED, "stale", id="nobody has asked for three periods"),
        pytest.param(
            StoreSeen(answered_s=ago(9), failing_since_s=ago(1), fits=False), UNHEALTHY, "incompatible", id="another's"
        ),
    ],
)
def test_a_role_is_as_its_store_answers(seen: StoreSeen, status: HealthStatus, reason: str) -> None:
    check = check_store("producer", seen, NOW)
    assert (check.role, check.status, check.reason) == ("producer", status, reason)
    assert check.observed_at_ms == (None if seen.answered_s is None else NOW.at_ms(seen.answered_s))


def worker(ready: bool, *roles: RoleHealth, age_s: float = 1.0) -> WorkerSeen:
    return WorkerSeen(WorkerHealth(worst(role.status for role in roles), ready, roles), ago(age_s))


WELL = RoleHealth("worker", HEALTHY)
AWAY = RoleHealth("store", UNHEALTHY, "store_unavailable", "claim has failed for 3.0 s: away")
BROKEN = RoleHealth("store", UNHEALTHY, "store_history_broken", "another store")
DRAINING = RoleHealth("worker", DEGRADED, "draining", "it was told to stop")
FEW = RoleHealth("pool main", DEGRADED, "executors_missing", "1 of 2 executors is ready")
ENDED = RoleHealth("worker", DEGRADED, text="it has ended")


@pytest.mark.parametrize(
    ("seen", "status", "reason"),
    [
        pytest.param(None, UNHEALTHY, "starting", id="not begun"),
        pytest.param(worker(True, WELL), HEALTHY, "ok", id="well"),
        pytest.param(worker(True, WELL, FEW), DEGRADED, "executors_missing", id="partly impaired"),
        pytest.param(worker(False, DRAINING), UNHEALTHY, "draining", id="draining is not ready"),
        pytest.param(worker(False, DRAINING, AWAY), UNHEALTHY, "store_unavailable", id="the worst is the reason"),
        pytest.param(worker(False, BROKEN), UNHEALTHY, "incompatible", id="another store"),
        pytest.param(worker(False, ENDED), UNHEALTHY, "not_running", id="without a code of its own"),
        pytest.param(worker(True, WELL, age_s=30.5), DEGRADED, "stale", id="stale is not healthy"),
    ],
)
def test_a_worker_is_as_it_last_said(seen: WorkerSeen | None, status: HealthStatus, reason: str) -> None:
    check = check_worker(seen, NOW)
    assert (check.status, check.reason) == (status, reason)


@pytest.mark.parametrize("seen", [None, worker(True, WELL), worker(False, AWAY), worker(False, DRAINING, age_s=30)])
def test_whatever_its_timer_ticks_for_lives(seen: WorkerSeen | None) -> None:
    assert (check_live(seen, NOW).status, check_live(seen, NOW).reason) == (HEALTHY, "ok")


def test_a_timer_that_stalled_is_death() -> None:
    check = check_live(worker(True, WELL, age_s=31), NOW)
    assert (check.status, check.reason, check.observed_at_ms) == (UNHEALTHY, "stalled", NOW.wall_ms - 31_000)


def test_a_process_is_as_bad_as_its_worst_role() -> None:
    live = RoleCheck("live", HEALTHY, "ok", 0)
    ready = tuple(RoleCheck(role, status, "", 0) for role, status in (("producer", HEALTHY), ("worker", DEGRADED)))
    assert ProcessHealth(live, ready).status is DEGRADED
    assert ProcessHealth(live, ()).status is HEALTHY
