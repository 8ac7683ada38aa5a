"""Runs a job without a worker: the store's own claim and settlement, one after the other."""

from runwick import JobState, Runwick
from runwick.contracts.attempts import ClaimPlan, LaneTurn
from runwick.contracts.outcomes import Answer, Outcome, OutcomeKind, Settlement
from runwick.contracts.usage import Usage
from runwick.policy.lanes import lanes_of


def succeed(rw: Runwick, result: bytes | None = None, usage: Usage | None = None) -> None:
    """Claim one job and settle it as succeeded."""
    _settle(rw, Outcome(OutcomeKind.SUCCEEDED, result=result, usage=usage), JobState.SUCCEEDED, None)


def fail(rw: Runwick, code: str) -> None:
    """Claim one job and settle it as failed for good."""
    _settle(rw, Outcome(OutcomeKind.FAILED_PERMANENTLY, code), JobState.FAILED, code)


def _settle(rw: Runwick, outcome: Outcome, state: JobState, code: str | None) -> None:
    store = rw.store
    plan = ClaimPlan(
        application=rw.application,
        worker=rw.ids.ordered(),
        claim_token=rw.ids.secret(),
        turns=[LaneTurn(lane, 1) for lane in lanes_of(sorted(rw.catalog.queues))],
        kinds=frozenset(rw.catalog.jobs),
        free=1,
        ahead=0,
        payload_bytes=1024 * 1024,
        lease_ms=60_000,
    )
    [attempt] = store.run(store.claim(plan)).attempts
    assert store.run(store.settle([Settlement(attempt, outcome, state, code)])) == [Answer.DONE]  # type: ignore[arg-type]
