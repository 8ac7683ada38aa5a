"""Attempts for tests that need one without a store."""

from typing import Any

from runwick.contracts.attempts import Attempt, Kind, Lane
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority


def an_attempt(number: int = 1, **changes: Any) -> Attempt:
    """A begun attempt number `number` of a job that only it knows."""
    values: dict[str, Any] = {
        "job": number,
        "job_id": number.to_bytes(16),
        "attempt_id": (number + 1000).to_bytes(16),
        "claim_token": (number + 2000).to_bytes(16),
        "kind": Kind("reports.build", 1),
        "lane": Lane("reports", Priority.MEDIUM),
        "number": 1,
        "execution": 1,
        "generation": 1,
        "begun": True,
        "runs_ahead": True,
        "crashes": 0,
        "unstarted": 0,
        "policy": JobPolicy(),
        "payload": b"{}",
        "payload_bytes": 2,
        "created_at_ms": 1_750_000_000_000,
    }
    return Attempt(**{**values, **changes})
