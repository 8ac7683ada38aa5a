import logging

import pytest

from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.health import HealthStatus, RoleHealth, WorkerHealth
from runwick.contracts.limits import Drift, LimitKind
from runwick.contracts.outcomes import Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.telemetry.logs import log_events
from tests.attempts import an_attempt


def test_listeners_hear_their_type_in_order_and_a_failing_one_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bus = Bus()
    heard: list[str] = []

    def broken(event: events.Recovered) -> None:
        raise RuntimeError("a listener's own fault")

    bus.listen(events.Recovered, broken)
    bus.listen(events.Recovered, lambda event: heard.append(f"recovered {event.count}"))
    bus.listen(events.WorkerStopped, lambda event: heard.append("stopped"))
    bus.publish(events.Recovered(3))
    assert heard == ["recovered 3"]
    assert "a listener of Recovered failed" in caplog.text


def test_log_records_carry_stable_event_ids_and_no_error_text(caplog: pytest.LogCaptureFixture) -> None:
    bus = Bus()
    log_events(bus)
    caplog.set_level(logging.INFO, logger="runwick")
    attempt = an_attempt()
    failed = Settlement(attempt, Outcome(OutcomeKind.FAILED, "handler_failed"), JobState.RETRYING, "handler_failed", 5)
    succeeded = Settlement(attempt, Outcome(OutcomeKind.SUCCEEDED), JobState.SUCCEEDED)
    bus.publish(events.WorkerReady("reports", 2))
    bus.publish(events.Settled([succeeded, failed], 0.001))
    bus.publish(events.LeaseLost(attempt, "the store gave it away"))
    bus.publish(events.SettlementDelayed(1, 2, "busy", 2.0))
    bus.publish(events.SettlementDelayed(1, 4, "busy", 8.0))
    bus.publish(events.LoopFailed("recovery", "KeyError: 3"))
    bus.publish(events.StoreCallFailed("claim", "store_unavailable", "StoreUnavailable: away"))
    bus.publish(events.StoreCallFailed("claim", "store_revision_mismatch", "StoreRevisionMismatch: newer"))
    bus.publish(events.StoreCallAnswered("claim", 1.5))
    bus.publish(events.ClaimsRefused("the application is being drained"))
    bus.publish(events.ClaimsAdmitted(2.5))
    bus.publish(events.HistoryBroken("this is another store", 3))
    bus.publish(events.AttemptAsked(attempt, CancellationCause.USER_REQUESTED))
    bus.publish(events.PredecessorRecovered(bytes(16), 2))
    bus.publish(events.EndedUnbegun([attempt], "expired"))
    bus.publish(events.Expired(4))
    bus.publish(events.LimitDrifted(Drift(LimitKind.QUEUE, "mails", "capacity 5", "capacity 2")))
    bus.publish(events.LimitsMended(1))
    bus.publish(events.LinesMoved(3))
    bus.publish(events.HealthChanged(_health("draining")))
    bus.publish(events.HealthChanged(_health("no_executors")))
    bus.publish(events.WorkerStopped(0))
    ids = [(vars(record)["event_id"], record.levelname) for record in caplog.records]
    assert ids == [
        (1000, "INFO"),
        (1011, "WARNING"),
        (1003, "ERROR"),
        (1004, "WARNING"),
        (1004, "ERROR"),
        (1007, "WARNING"),
        (1701, "ERROR"),
        (1703, "ERROR"),
        (1702, "INFO"),
        (1012, "WARNING"),
        (1013, "INFO"),
        (1014, "CRITICAL"),
        (1016, "INFO"),
        (1017, "WARNING"),
        (1018, "INFO"),
        (1019, "WARNING"),
        (1020, "WARNING"),
        (1021, "WARNING"),
        (1022, "INFO"),
        (1015, "INFO"),
        (1015, "WARNING"),
        (1001, "INFO"),
    ]
    assert caplog.records[-2].getMessage() == "[1015] health is degraded (pool main: no_executors)"


def _health(code: str) -> WorkerHealth:
    return WorkerHealth(HealthStatus.DEGRADED, False, (RoleHealth("pool main", HealthStatus.DEGRADED, code),))
