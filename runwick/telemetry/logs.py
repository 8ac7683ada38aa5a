"""The bus's events as standard `logging` records of the logger ``runwick``, with stable event ids.

The id is on each record as ``event_id`` and at the head of its text. Ids never change their meaning.
"""

import logging
from collections.abc import Callable
from typing import Any

from runwick.contracts.health import HealthStatus
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import OutcomeKind
from runwick.telemetry import events
from runwick.telemetry.bus import Bus

_log = logging.getLogger("runwick")


def log_events(bus: Bus) -> None:
    """Write the bus's events to the logger ``runwick``."""
    for event_type, write in _WRITERS.items():
        bus.listen(event_type, write)


def _record(level: int, event_id: int, text: str, *values: object) -> None:
    _log.log(level, f"[{event_id}] {text}", *values, extra={"event_id": event_id})


def _ready(event: events.WorkerReady) -> None:
    _record(logging.INFO, 1000, "worker of %s ready, %d runs at once", event.application, event.executors)


def _lease_lost(event: events.LeaseLost) -> None:
    attempt = event.attempt
    _record(
        logging.ERROR,
        1003,
        "job %s attempt %s lost its lease: %s",
        id_text(attempt.job_id),
        id_text(attempt.attempt_id),
        event.reason,
    )


def _delayed(event: events.SettlementDelayed) -> None:
    level = logging.WARNING if event.tries <= 3 and not event.overdue else logging.ERROR
    _record(
        level,
        1004,
        "%d results could not be stored (try %d): %s; again in %.1f s",
        event.attempts,
        event.tries,
        event.error,
        event.pause_s,
    )


def _refused(event: events.SettlementRefused) -> None:
    _record(logging.ERROR, 1005, "result of job %s was refused: %s", id_text(event.attempt.job_id), event.error)


def _recovered(event: events.Recovered) -> None:
    _record(logging.WARNING, 1006, "recovered %d attempts whose lease had run out", event.count)


def _loop_failed(event: events.LoopFailed) -> None:
    _record(logging.WARNING, 1007, "%s failed and goes on: %s", event.loop, event.error)


def _store_call_failed(event: events.StoreCallFailed) -> None:
    event_id = 1703 if event.code == "store_revision_mismatch" else 1701
    _record(logging.ERROR, event_id, "%s fails and is repeated: %s", event.act, event.error)


def _store_call_answered(event: events.StoreCallAnswered) -> None:
    _record(logging.INFO, 1702, "%s is answered again after %.1f s", event.act, event.seconds)


def _claims_refused(event: events.ClaimsRefused) -> None:
    _record(logging.WARNING, 1012, "no work is claimed: %s", event.reason)


def _claims_admitted(event: events.ClaimsAdmitted) -> None:
    _record(logging.INFO, 1013, "work is claimed again after %.1f s", event.seconds)


def _history_broken(event: events.HistoryBroken) -> None:
    _record(logging.CRITICAL, 1014, "%d leases are lost and the worker ends: %s", event.leases, event.reason)


def _expired(event: events.Expired) -> None:
    _record(logging.WARNING, 1019, "%d jobs expired before they began", event.count)


def _drifted(event: events.LimitDrifted) -> None:
    drift = event.drift
    _record(
        logging.WARNING,
        1020,
        "%s %s has %s in the store, which holds; declared is %s",
        drift.kind.value,
        drift.key,
        drift.stored,
        drift.declared,
    )


def _mended(event: events.LimitsMended) -> None:
    _record(logging.WARNING, 1021, "%d scopes counted their holds wrongly and were set right", event.count)


def _lines_moved(event: events.LinesMoved) -> None:
    _record(logging.INFO, 1022, "%d jobs were called out of lines that had stood still", event.count)


def _predecessor(event: events.PredecessorRecovered) -> None:
    _record(
        logging.WARNING, 1017, "recovered %d attempts of worker %s, which is dead", event.count, id_text(event.worker)
    )


def _ended_unbegun(event: events.EndedUnbegun) -> None:
    for attempt in event.attempts:
        job = id_text(attempt.job_id)
        _record(logging.INFO, 1018, "%s job %s ended before it began: %s", attempt.kind.name, job, event.code)


def _asked(event: events.AttemptAsked) -> None:
    attempt = event.attempt
    _record(
        logging.INFO,
        1016,
        "%s job %s is asked to stop: %s",
        attempt.kind.name,
        id_text(attempt.job_id),
        event.cause.name,
    )


def _health(event: events.HealthChanged) -> None:
    health = event.health
    wrong = [role for role in health.roles if role.status is not HealthStatus.HEALTHY]
    listed = "; ".join(f"{role.role}: {role.text or role.code}" for role in wrong)
    level = logging.WARNING if any(role.code != "draining" for role in wrong) else logging.INFO
    _record(level, 1015, "health is %s%s", health.status.value, f" ({listed})" if wrong else "")


def _stopped(event: events.WorkerStopped) -> None:
    _record(logging.INFO, 1001, "worker stopped, %d attempts left to their leases", event.left_to_leases)


def _settled(event: events.Settled) -> None:
    for settlement in event.settlements:
        outcome = settlement.outcome
        if outcome.kind is OutcomeKind.SUCCEEDED:
            continue
        attempt = settlement.attempt
        _record(
            logging.WARNING,
            1011,
            "%s job %s execution %d of %d: %s (%s), now %s",
            attempt.kind.name,
            id_text(attempt.job_id),
            attempt.execution,
            attempt.policy.max_executions,
            outcome.kind.value,
            outcome.code,
            settlement.state.value,
        )


_WRITERS: dict[type[Any], Callable[[Any], None]] = {
    events.WorkerReady: _ready,
    events.LeaseLost: _lease_lost,
    events.SettlementDelayed: _delayed,
    events.SettlementRefused: _refused,
    events.Recovered: _recovered,
    events.Expired: _expired,
    events.LimitDrifted: _drifted,
    events.LimitsMended: _mended,
    events.LinesMoved: _lines_moved,
    events.PredecessorRecovered: _predecessor,
    events.EndedUnbegun: _ended_unbegun,
    events.AttemptAsked: _asked,
    events.HealthChanged: _health,
    events.LoopFailed: _loop_failed,
    events.StoreCallFailed: _store_call_failed,
    events.StoreCallAnswered: _store_call_answered,
    events.ClaimsRefused: _claims_refused,
    events.ClaimsAdmitted: _claims_admitted,
    events.HistoryBroken: _history_broken,
    events.WorkerStopped: _stopped,
    events.Settled: _settled,
}
